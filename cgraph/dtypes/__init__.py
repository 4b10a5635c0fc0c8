"""Storage dtypes, and the conversion of arrays and dtypes."""
