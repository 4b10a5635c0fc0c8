"""Attention on tile registers (Intel AMX), of queries, keys and values rounded to bfloat16."""
