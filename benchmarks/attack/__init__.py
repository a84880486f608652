"""Attacks on coevo: kills, damaged files, bad inputs, forks, threads, stores, injection."""
