"""Whether guarantees hold, and alarms are raised, while the cases drift."""
