"""Speed, as ratios within one run against yardsticks that do not move."""
