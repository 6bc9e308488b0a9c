"""Laws of many rigid bodies."""
