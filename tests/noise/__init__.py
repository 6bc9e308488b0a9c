"""Laws of the noise."""
