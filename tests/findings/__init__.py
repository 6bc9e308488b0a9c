"""Laws of the measures themselves: that they can pass and that they can fail."""
