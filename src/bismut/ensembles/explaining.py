"""How a scheme is run for many trajectories, in words."""

import jax.numpy as jnp

from bismut.ensembles import lanes
from bismut.ensembles.block import example_of, step_of, step_size
from bismut.mechanics import Scheme, State


def fallbacks(scheme: Scheme, one: State) -> dict[str, str]:
    """Pieces of a step that lanes leave to vmap, and why."""
    h = jnp.ones((), scheme.system.dtype)
    return lanes.left_to_vmap(lambda now: step_of(scheme)(now, h, h), example_of(scheme, one))


def ensemble_words(scheme: Scheme) -> list[str]:
    """What `explain` says of how many trajectories are run."""
    one = State(scheme.space.origin(scheme.system.dtype), scheme.space.zero(scheme.system.dtype))
    size, largest = step_size(scheme, one).operations, lanes.LARGEST
    if size > largest:
        return [f"  ensembles    by vmap: {size} scalar operations a step are more than the {largest} that lanes are worth their compile time for"]
    words = [f"  ensembles    by lanes: {size} scalar operations a step, each a vector over trajectories"]
    return words + [f"  left to vmap {name}, {why}" for name, why in fallbacks(scheme, one).items()]
