"""Quantised networks computed with integers from one uint8 or int8 value to the next."""
