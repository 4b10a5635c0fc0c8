"""Softmax, log_softmax and logsumexp along one axis, on the CPU and by teams of a GPU's threads."""
