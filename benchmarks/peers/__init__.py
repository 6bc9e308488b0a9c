"""What one would use instead. A peer that is not installed is named in the table and left out."""

from benchmarks.peers import bodies, by_hand, lammps, openmm

CONTESTANTS = {**by_hand.CONTESTANTS, **bodies.CONTESTANTS, **lammps.CONTESTANTS, **openmm.CONTESTANTS}
