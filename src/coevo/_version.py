"""The version, in a module that all packages can import."""

__version__ = "0.2.0.dev0"
