"""What a bath does beside what may be meant by it.

    noise beside a bath       nothing balances it: the system is hotter than kT
    steps of γh > ½           without forces positions diffuse (γh/2) coth(γh/2) times too fast, and drift so under a constant force

The second is exact for BAOAB, ABOBA, OBABO and GLA, whose momenta are a chain p' = e^{−γh} p + …. Einstein's relation holds, so no test of
temperature sees it.
"""

import math
from typing import Any

from bismut.blame import warn
from bismut.errors import BismutWarning
from bismut.mechanics.friction import Friction
from bismut.tracing import traced

DRIVEN = "The system's own noise drives it beside the bath, and nothing balances it: the system is hotter than kT"
_FAST = 0.5  # γh from which free diffusion is off by more than 2 %


def warn_of_noise() -> None:
    advice = 'Omit friction and rate to have the bath balance the noise, remove the noise, or give own_noise="drives" if that is what you want.'
    warn(f"{DRIVEN}. {advice}", BismutWarning)


def too_fast(friction: Friction, step: Any) -> str:
    """By how much free diffusion is too fast, in words; nothing where it is not, or where the rate is not known."""
    rate = friction.fastest()
    if rate is None or traced((rate, step)) or not float(rate) * abs(step) > _FAST:
        return ""
    x = float(rate) * abs(step)
    return f"γh = {x:.3g}: without forces positions diffuse {0.5 * x / math.tanh(0.5 * x):.3g} times too fast; averages are not affected"


def warn_of_step(friction: Friction, step: Any) -> None:
    if fast := too_fast(friction, step):
        warn(f"{fast}. Where motion matters, take a step below {_FAST:g}/γ.", BismutWarning)
