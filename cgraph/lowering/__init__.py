"""Logical ops become physical ones: channel-blocked images, packed constants."""
