"""Evaluation of decision trees."""
