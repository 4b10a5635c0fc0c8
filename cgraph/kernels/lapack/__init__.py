"""Matrices of any size: calls of LAPACK."""
