"""Inference from released values: intervals, tests, predictions and comparisons, without data."""
