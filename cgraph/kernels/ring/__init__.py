"""The native reader of streamed weights: copies pieces of a file into a ring."""
