"""Speed, measured beside what one would use instead: `python -m benchmarks` prints a table of ratios and writes JSON."""
