"""How a scheme is run for many trajectories, in words."""

import jax

from bismut.ensembles.observable import energy
from bismut.ensembles.observers.records import Records
from bismut.ensembles.observers.watcher import Setting
from bismut.ensembles.task import chosen, known
from bismut.mechanics import Scheme, State
from bismut.noise import Wiener


def ensemble_words(scheme: Scheme) -> list[str]:
    """What `explain` says of how many trajectories are run."""
    one = jax.eval_shape(lambda: State(scheme.space.origin(scheme.system.dtype), scheme.space.zero(scheme.system.dtype)))
    run = Setting(scheme, Wiener(0), (("energy", Records(energy)),))  # as `simulate` runs it; what it has found need not be found again
    found = known("auto", run, one) or chosen("auto", Setting(scheme, Wiener(0), ()), one)
    return [f"  ensembles    by the engine {found.engine.name}: {found.why}"]
