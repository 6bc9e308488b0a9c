"""Pictures of the paper and ours, from results."""
