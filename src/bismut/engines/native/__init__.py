"""The step of one trajectory as one machine loop over vectors of trajectories, through LLVM."""
