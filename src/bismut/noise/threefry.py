"""Threefry-4x32 with 20 rounds, a counter-based generator (Salmon, Moraes, Dror & Shaw, SC'11).

    four random words = threefry(key of four words, counter of four words)

There is no state: any word of any stream is computed on its own, in any order, on any device. Additions, rotations and exclusive ors of
32-bit words only, so that a compiler turns it into one vector loop.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, UInt32

Word = UInt32[Array, "..."]
Quad = tuple[Word, Word, Word, Word]

_ROTATIONS = np.array([(10, 26), (11, 21), (13, 27), (23, 5), (6, 20), (17, 11), (25, 10), (18, 20)], np.uint32)
_PARITY = np.uint32(0x1BD11BDA)
_STAGES = 5  # of four rounds each


def _mix(a, b, k):
    a = a + b
    return a, ((b << k) | (b >> (np.uint32(32) - k))) ^ a


def threefry(key: Quad, counter: Quad) -> Quad:
    """The four words at a counter; arrays broadcast.

    The stages are a loop, which XLA compiles in no time and repeats nowhere; the native engine writes out so short a one.
    """
    schedule = jnp.broadcast_arrays(*(jnp.asarray(k, jnp.uint32) for k in (*key, key[0] ^ key[1] ^ key[2] ^ key[3] ^ _PARITY)))
    start = jnp.broadcast_arrays(*(jnp.asarray(c, jnp.uint32) + k for c, k in zip(counter, key, strict=True)))
    added = jnp.stack([jnp.stack([schedule[(s + n) % 5] + np.uint32(s * (n == 3)) for n in range(4)]) for s in range(1, _STAGES + 1)])
    turned = np.stack([_ROTATIONS[4 * (s % 2) : 4 * (s % 2) + 4] for s in range(_STAGES)])

    def stage(x, row):
        keys, rotations = row
        x = list(x)
        for r in range(4):
            i, j = (1, 3) if r % 2 == 0 else (3, 1)
            x[0], x[i] = _mix(x[0], x[i], rotations[r, 0])
            x[2], x[j] = _mix(x[2], x[j], rotations[r, 1])
        return tuple(word + k for word, k in zip(x, keys, strict=True)), None

    (a, b, c, d), _ = jax.lax.scan(stage, tuple(start), (added, turned))
    return a, b, c, d
