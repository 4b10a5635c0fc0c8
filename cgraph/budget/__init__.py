"""Fitting of plans into a budget: `budget` is the record, `fit` the table of means, `refusal` the error messages."""
