"""Patch-based execution around the memory peak (Cipolletta and Calimera 2021)."""
