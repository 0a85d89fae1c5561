"""Experiments: parameters in, one tidy table out."""
