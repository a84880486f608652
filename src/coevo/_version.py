"""The version, in one place that every floor may import."""

__version__ = "0.2.0.dev0"
