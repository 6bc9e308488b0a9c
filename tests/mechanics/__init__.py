"""Laws of systems: Legendre transforms, parameters, refusals."""
