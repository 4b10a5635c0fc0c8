"""A wrapper of kernel calls that records their times."""
