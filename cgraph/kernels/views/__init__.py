"""Views of operands as kernels read them, and the geometry that packing and calls share."""
