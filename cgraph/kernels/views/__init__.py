"""Views of operands as kernels read them, and the geometry shared by packing and calls."""
