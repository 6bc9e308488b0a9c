"""Laws of what follows from an action."""
