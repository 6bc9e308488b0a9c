"""When two functions are the same, and a number that says so in every process."""

from bismut.sameness.fingerprint import fingerprint, fingerprint_of_arrays
from bismut.sameness.package import package_hash
from bismut.sameness.walk import can_compare, key_of

__all__ = ["can_compare", "fingerprint", "fingerprint_of_arrays", "key_of", "package_hash"]
