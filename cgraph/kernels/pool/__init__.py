"""Max and average pooling, on channel-blocked and plain images."""
