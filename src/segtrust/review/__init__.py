"""The review desk: deferred cases are seen and decided on, and whether the threshold still holds."""
