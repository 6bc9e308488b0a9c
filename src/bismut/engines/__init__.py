"""How a step becomes machine code: every trick that knows a compiler or a processor lives here and nowhere else."""
