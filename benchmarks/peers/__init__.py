"""What one would use instead. A peer that is not installed is named in the table and left out."""

from benchmarks.peers import by_hand, bodies, lammps, openmm

CONTESTANTS = {**by_hand.CONTESTANTS, **bodies.CONTESTANTS, **lammps.CONTESTANTS, **openmm.CONTESTANTS}
