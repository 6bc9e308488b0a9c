"""Threefry-4x32 with 20 rounds, a counter-based generator (Salmon, Moraes, Dror & Shaw, SC'11).

    four random words = threefry(key of four words, counter of four words)

There is no state: any word of any stream is computed on its own, in any order, on any device. Additions, rotations and exclusive ors of
32-bit words only, so that a compiler turns it into one vector loop.
"""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, UInt32

Word = UInt32[Array, "..."]
Words = tuple[Word, Word, Word, Word]

_ROTATIONS = ((10, 26), (11, 21), (13, 27), (23, 5), (6, 20), (17, 11), (25, 10), (18, 20))
_PARITY = np.uint32(0x1BD11BDA)
_ROUNDS = 20


def _mix(a, b, k):
    a = a + b
    return a, ((b << np.uint32(k)) | (b >> np.uint32(32 - k))) ^ a


def threefry(key: Words, counter: Words) -> Words:
    """The four words at a counter; arrays broadcast."""
    schedule = (*key, key[0] ^ key[1] ^ key[2] ^ key[3] ^ _PARITY)
    x = [jnp.asarray(c, jnp.uint32) + k for c, k in zip(counter, key, strict=True)]
    for r in range(_ROUNDS):
        i, j = (1, 3) if r % 2 == 0 else (3, 1)
        x[0], x[i] = _mix(x[0], x[i], _ROTATIONS[r % 8][0])
        x[2], x[j] = _mix(x[2], x[j], _ROTATIONS[r % 8][1])
        if r % 4 == 3:
            s = r // 4 + 1
            x = [word + schedule[(s + n) % 5] for n, word in enumerate(x)]
            x[3] = x[3] + np.uint32(s)
    return x[0], x[1], x[2], x[3]
