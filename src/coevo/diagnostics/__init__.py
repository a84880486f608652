"""Measures speed (`coevo bench`) and examines the installation (`coevo doctor`)."""
