"""LLVM code of programs: vectors, lanes, arrays in memory, functions, the walk over equations."""
