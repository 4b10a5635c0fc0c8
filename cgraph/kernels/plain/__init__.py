"""Copies of plain images ``[n, c, h, w]`` with padding."""
