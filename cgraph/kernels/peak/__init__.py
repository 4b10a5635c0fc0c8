"""Multiply-adds on registers alone: the peak rate of the machine."""
