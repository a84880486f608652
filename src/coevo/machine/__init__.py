"""What this machine can do: how fast it evaluates, and whether all is in order."""
