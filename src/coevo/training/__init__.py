"""One way to run a search."""
