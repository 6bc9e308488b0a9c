"""A molecule's orientation in a field, and a direction that it prefers: a density on SO(3) × S².

    log ρ(R, n) = 2 R₃₃ + 3 n·(R e₁),     with respect to Haar's measure and area

Run it:   python examples/spin.py
      or  bismut sample examples/spin.py:log_density --chains 256
"""

import bismut as bm

space = {"R": bm.SO3(), "n": bm.Sphere(2)}


def log_density(p):
    return 2.0 * p["R"][2, 2] + 3.0 * p["n"] @ p["R"][:, 0]


if __name__ == "__main__":
    import sys

    import jax

    jax.config.update("jax_enable_x64", True)
    small = "--smoke" in sys.argv
    print(bm.sample(space, log_density, chains=16 if small else 256, draws=20 if small else 500, seed=1))
