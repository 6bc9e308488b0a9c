"""A cluster of two processes for all tests of this folder: a worker takes seconds to begin."""

import pytest

from bismut.executors import Dask


@pytest.fixture(scope="session")
def local_cluster():
    with Dask("local:2") as executor:
        yield executor
