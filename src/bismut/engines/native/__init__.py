"""The step of one trajectory as one machine loop over vectors of trajectories, through LLVM.

Every scalar of a step becomes a vector over trajectories, and all steps between two looks, noise included, run with the state in registers. (XLA on a
CPU gives a loop one output, computes again what outputs share, and stores what does not fit: 9 times slower on the heavy top.)
"""
