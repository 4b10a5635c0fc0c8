"""Nearest and linear resizing, on channel-blocked and plain images."""
