"""Lookup of bytes in a table of 256."""
