"""The version, in a module that is cheap to import and needs no package metadata."""

__version__ = "0.1.0"
