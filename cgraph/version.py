"""The version: a saved function runs in the one that saved it."""

__version__ = "0.1.0"
