"""diffrax: ShARK on underdamped Langevin dynamics, one solve for each copy."""

from __future__ import annotations

from importlib.metadata import version

import jax
import jax.numpy as jnp
import numpy as np

from bismut.findings import peers

_COPIES, _LOOKS = 2000, 60


def well() -> peers.Judged:
    import diffrax  # pyright: ignore[reportMissingImports]

    end = 8.0 + _LOOKS
    slope = lambda x: x + x**3
    drift = diffrax.UnderdampedLangevinDriftTerm(peers.FRICTION, peers.KT, lambda x, _: slope(x) / peers.KT)

    def one(key):
        noise = diffrax.VirtualBrownianTree(0.0, end, peers.WELL_STEP / 4, (3,), key, levy_area=diffrax.SpaceTimeTimeLevyArea)
        terms = diffrax.MultiTerm(drift, diffrax.UnderdampedLangevinDiffusionTerm(peers.FRICTION, peers.KT, noise))
        start = (jnp.zeros(3), jax.random.normal(jax.random.fold_in(key, 1), (3,)))
        looks = diffrax.SaveAt(ts=jnp.arange(9.0, end + 0.5))
        found = diffrax.diffeqsolve(terms, diffrax.ShARK(), 0.0, end, peers.WELL_STEP, start, saveat=looks, max_steps=None)
        assert found.ys is not None
        return found.ys[1]

    speeds = jax.jit(jax.vmap(one))(jax.random.split(jax.random.key(1), _COPIES))
    axes = np.moveaxis(np.asarray(speeds), 0, 1) ** 2 / peers.KT
    return peers.Judged(f"diffrax {version('diffrax')}, ShARK", peers.WELL_AXES, peers.WELL_STEP, axes)
