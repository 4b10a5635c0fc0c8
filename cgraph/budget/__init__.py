"""Fit plans into a number of bytes: `budget` is the record, `fit` the table of means, `refusal` what users are told."""
