"""Bridges to other libraries: thin, over the public functions; each needs the library it is named after."""
