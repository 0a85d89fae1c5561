"""Tables and figures of results; the only place that rounds."""
