"""Export: a compiled function as an object file and a C header, without Python, an interpreter or allocation."""
