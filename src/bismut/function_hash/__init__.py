"""Structural hashing: when two functions are the same, and a number that says so in every process."""

from bismut.function_hash.fingerprint import fingerprint, fingerprint_of_arrays, package_hash
from bismut.function_hash.keys import can_compare, key_of

__all__ = ["can_compare", "fingerprint", "fingerprint_of_arrays", "key_of", "package_hash"]
