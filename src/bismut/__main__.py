"""`python -m bismut` is the command line."""

from bismut.cli import main

main()
