"""Figures: their interface, their tools, and the numbers of theory."""
