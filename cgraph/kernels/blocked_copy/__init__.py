"""Copies between plain and channel-blocked images, halo fills, and copies of channels (concat, slices)."""
