"""What is known by name, of bismut and of installed packages."""
