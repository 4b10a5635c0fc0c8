"""Choice of the layers that compute in bfloat16 within an accepted error: see docs/half.md."""
