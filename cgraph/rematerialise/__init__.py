"""Rematerialisation: run some steps again, so that fewer values stay in memory."""
