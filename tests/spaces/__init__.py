"""Laws of the spaces."""
