"""Runs that show what segtrust withstands, each with figures for docs/results/reliability.md."""
