"""Fourier transforms of lines of numbers."""
