"""The paper: networks, subpopulations, the search and what it asks of an engine."""
