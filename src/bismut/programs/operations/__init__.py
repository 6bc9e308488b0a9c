"""What operations mean, one file for each kind."""
