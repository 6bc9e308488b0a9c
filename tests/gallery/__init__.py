"""The gallery, one catalogue."""
