"""Confidences and losses of many cases: curves, areas, intervals, certified thresholds. Vectors only."""
