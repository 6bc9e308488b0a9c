"""Connecting to a Dask scheduler: whether it exists, answers, and may be sent functions."""

from __future__ import annotations

import asyncio
import ipaddress
import socket
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from urllib.parse import urlsplit

from bismut.errors import BismutError, DomainError

_SCHEMES = ("tcp", "tls", "ws", "wss", "ucx", "ucxs")
_SOON = 1.0  # seconds after which a message says that a scheduler is waited for


@contextmanager
def waiting(address: str) -> Iterator[float]:
    """Within, a client connects to a scheduler, for so many seconds at most; a message is printed if that takes a while."""
    import dask
    from dask.utils import parse_timedelta

    limit = parse_timedelta(dask.config.get("distributed.comm.timeouts.connect", "30s"))
    message = threading.Timer(_SOON, print, (f"bismut: waiting for the scheduler at {address} ({limit:g} s).",), {"file": sys.stderr})
    message.daemon = True
    message.start()
    try:
        yield limit
    finally:
        message.cancel()


def probe(address: str, seconds: float) -> None:
    """Raise at once where nothing listens, and in time where what listens is no scheduler: a client of Dask would wait for its greeting for ever."""
    from distributed.comm import connect
    from distributed.security import Security

    parts, secrets = urlsplit(address), Security().get_connection_args("client")
    if parts.scheme in ("tls", "wss") and secrets.get("ssl_context") is None:
        raise BismutError(
            f"{address} needs certificates, and Dask has none here: set DASK_DISTRIBUTED__COMM__TLS__CA_FILE, "
            "DASK_DISTRIBUTED__COMM__TLS__CLIENT__CERT and DASK_DISTRIBUTED__COMM__TLS__CLIENT__KEY (docs/scaling.md says how)."
        )
    if parts.scheme in ("tcp", "tls"):
        socket.create_connection((parts.hostname, parts.port), seconds).close()

    async def greet() -> None:
        comm = await connect(address, timeout=seconds, **secrets)
        await comm.close()

    with ThreadPoolExecutor(1) as pool:  # a notebook has a loop of its own in this thread
        pool.submit(lambda: asyncio.run(asyncio.wait_for(greet(), seconds))).result()


def check_form(address: str) -> None:
    """Refuse what is no address of a scheduler, before connecting to it."""
    try:
        parts = urlsplit(address)
        good = parts.scheme in _SCHEMES and bool(parts.hostname) and bool(parts.port)  # a port out of range raises here
    except ValueError:
        good = False
    if not good:
        raise DomainError(f"A cluster is tcp://host:port, tls://host:port or local:N, got {address!r}.")


def check_address(address: str, insecure: bool) -> None:
    """Refuse an unencrypted cluster on another machine: functions are sent to it, so anyone who can join it can run programs."""
    parts = urlsplit(address)
    if parts.scheme in ("tls", "wss", "inproc", "ucxs") or insecure:
        return
    try:
        places = {entry[4][0] for entry in socket.getaddrinfo(parts.hostname, None)}
    except OSError as problem:
        raise BismutError(f"The host of {address} is unknown: {problem}.") from problem
    if not all(ipaddress.ip_address(str(place).partition("%")[0]).is_loopback for place in places):
        raise BismutError(
            f"{address} is not on this machine and its connections are open: anyone who can reach it can run programs on it. Use tls:// "
            "(docs/scaling.md says how), or allow it in a network you trust with --insecure (in Python insecure=True)."
        )
