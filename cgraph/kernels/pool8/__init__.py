"""Average pooling of channel-blocked bytes."""
