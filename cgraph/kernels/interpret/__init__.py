"""The interpreter of call tables: native code that runs kernels on one thread or on a team of threads."""
