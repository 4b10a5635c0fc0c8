"""Walks over arrays of any rank, shared by many families."""
