"""Files: one self-recognising reader a format, data sets of many cases, and tables of results."""
