"""Pooling, its gradient, depthwise convolution and resizing in blocks of a GPU's threads."""
