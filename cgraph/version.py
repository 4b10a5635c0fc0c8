"""The version of cgraph; a saved function runs only in the version that saved it."""

__version__ = "0.1.0"
