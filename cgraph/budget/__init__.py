"""Fit a plan into a number of bytes."""
