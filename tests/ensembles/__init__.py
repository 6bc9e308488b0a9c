"""Laws of many trajectories."""
