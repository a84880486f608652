"""The speed of this machine, and whether coevo's requirements are met."""
