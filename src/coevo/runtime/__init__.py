"""How the machine is used: compiled kernels, threads, random streams."""
