"""Arrays in, numbers out: the only loops over pixels in the package."""
