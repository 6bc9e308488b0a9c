"""Work without mechanics, whose jobs say where they are done, and may wait, fail, hang or kill their worker."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import NamedTuple

from bismut.executors import Channel


class Errand(NamedTuple):
    """number ↦ number²; what goes wrong on the way goes wrong only once, unless `always`. Every beginning is noted in the folder."""

    folder: str
    trouble: str = ""
    where: int = 1
    always: bool = False
    seconds: float = 0.0

    def __call__(self, number: int, channel: Channel):
        began = Path(self.folder) / f"{number}"
        first = not began.exists()
        with began.open("a") as file:
            file.write(f"{os.getpid()}\n")
        end = time.monotonic() + self.seconds
        while time.monotonic() < end and not channel.stopped():
            time.sleep(0.01)
        if number == self.where and (first or self.always):
            if self.trouble == "raise":
                raise ValueError(f"number {number} is not for me")
            if self.trouble == "die":
                os.kill(os.getpid(), signal.SIGKILL)
            if self.trouble == "hang":
                os.kill(os.getpid(), signal.SIGSTOP)
        channel.send(number)
        return "stopped" if channel.stopped() else number**2

    def begun(self) -> dict[int, int]:
        """How often each number was begun."""
        return {int(file.name): len(file.read_text().split()) for file in Path(self.folder).iterdir()}
