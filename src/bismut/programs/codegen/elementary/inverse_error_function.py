"""The inverse of erf.

    erf y = x:     y₀ to 17 bits from w = −log(1 − x²),     d = (x − erf y₀) (√π/2) e^(y₀²),     y = y₀ + d + y₀ d² + (1 + 4 y₀²) d³ / 3 + …

The difference x − erf y₀ is that of 1 − x and erfc y₀ where x is near 1.
"""

from __future__ import annotations

import math

from bismut.programs.codegen.elementary.error_function import complement, small_part
from bismut.programs.codegen.elementary.exponential import exp, scaled
from bismut.programs.codegen.elementary.formula import RealVector, fma, polynomial, where
from bismut.programs.codegen.elementary.logarithm import log_corrected

_HALF_ROOT_PI = 0.886226925452758

# y / x as a function of w − 5/2 for w ≤ 5 and of √w − 4 above (up to 6.2), interpolated in nine Chebyshev points each.
_CENTRE = (
    1.501409351110792,
    0.2466407662672499,
    -0.004177346517287056,
    -0.001253758884835318,
    0.00021831297984101024,
    -4.38034671412375e-06,
    -3.454779514269784e-06,
    3.4222470899345687e-07,
    2.2605977741170975e-08,
)
_OUTSIDE = (
    3.839777580382146,
    1.009512221321777,
    0.0013237087122123753,
    -0.0009433336766889268,
    0.00021802116668184722,
    -2.7886630738945093e-05,
    0.00010576293130230591,
    -7.876299566045265e-05,
    1.5924086555934602e-05,
)


def erf_inv(x: RealVector) -> RealVector:
    size = abs(x)
    inside = size.at_most(1.0 - 2.0**-53)
    w = -log_corrected((1.0 - inside) * (1.0 + inside), None)
    ratio = where(w > 5.0, polynomial(w.at_least(0.0).sqrt() - 4.0, _OUTSIDE), polynomial(w - 2.5, _CENTRE))
    start = inside * ratio
    raised, tail = complement(start)
    far = (scaled(raised, tail[0]) - (1.0 - inside)) + scaled(raised, tail[1])
    near = (inside - start) - small_part(start)
    d = where(inside > 0.5, far, near) * exp(start * start) * _HALF_ROOT_PI
    third = fma(start * start, 4.0, 1.0) * (1.0 / 3.0)
    result = start + d * fma(d, fma(d, third, start), 1.0)
    result = where(size >= 1.0, where(size > 1.0, math.nan, math.inf), result)
    return result.signed_as(x)
