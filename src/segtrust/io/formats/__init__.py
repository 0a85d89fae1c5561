"""One module per file format: each recognises its files by their first bytes and opens them."""
