"""Lowering of logical to physical ops: channel-blocked images, packed constants."""
