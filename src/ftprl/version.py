"""The version, in a place that everybody may import and that needs no metadata to be looked up."""

__version__ = "0.1.0"
