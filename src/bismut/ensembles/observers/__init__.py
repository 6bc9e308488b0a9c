"""Who looks on while a run goes on, in constant memory; one idea per file."""
