"""Products of pairs of bfloat16 numbers, summed in float32."""
