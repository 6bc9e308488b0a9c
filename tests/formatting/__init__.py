"""How things show themselves at a prompt and in a notebook."""
