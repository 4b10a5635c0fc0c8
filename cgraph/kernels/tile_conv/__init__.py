"""Convolutions on tile registers (Intel AMX), of images of bfloat16 numbers, and the rounding of such images."""
