"""Products on tile registers (Intel AMX), of bytes and of bfloat16 numbers."""
