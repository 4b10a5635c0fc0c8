"""Dynamic lengths: axes whose length is known only at run time."""
