"""A real browser without a screen and without a network, spoken to through a pair of pipes (Chrome's DevTools protocol): no port is opened."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from base64 import b64decode
from pathlib import Path
from typing import Any

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu-sandbox",
    "--use-angle=swiftshader",
    "--enable-unsafe-swiftshader",
    "--disable-background-networking",
    "--disable-component-update",
    "--no-first-run",
    "--host-resolver-rules=MAP * ~NOTFOUND",
    "--window-size=900,640",
    "--remote-debugging-pipe",
)


class Browser:
    """Chromium with one page. What the console said, and every request, is kept."""

    def __init__(self, offline: bool = True):
        program = next((found for name in NAMES if (found := shutil.which(name))), None)
        if program is None:
            pytest.fail("Pages are tested in Chromium, which is not installed. `make page-test` installs it.")
        self.folder = tempfile.TemporaryDirectory(prefix="bismut-browser-", ignore_cleanup_errors=True)
        (theirs_in, self.to), (self.back, theirs_out) = os.pipe(), os.pipe()

        def ends() -> None:  # the browser reads from descriptor 3 and writes to 4
            high = [os.dup(theirs_in), os.dup(theirs_out)]
            os.dup2(high[0], 3)
            os.dup2(high[1], 4)

        command = [program, *FLAGS, f"--user-data-dir={self.folder.name}", "about:blank"]
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, preexec_fn=ends, close_fds=False)  # noqa: PLW1509
        os.close(theirs_in)
        os.close(theirs_out)
        self.number, self.rest, self.session = 0, b"", None
        self.errors: list[str] = []
        self.requests: list[str] = []
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.ask(f"{domain}.enable")
        if offline:
            self.ask("Network.emulateNetworkConditions", offline=True, latency=0, downloadThroughput=-1, uploadThroughput=-1)

    def ask(self, method: str, **parameters: Any) -> dict[str, Any]:
        self.number += 1
        message: dict[str, Any] = {"id": self.number, "method": method, "params": parameters}
        if self.session is not None:
            message["sessionId"] = self.session
        os.write(self.to, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._read()
            if answer.get("id") == self.number:
                assert "error" not in answer, answer
                return answer["result"]
            self._note(answer)

    def _read(self) -> dict[str, Any]:
        while b"\0" not in self.rest:
            more = os.read(self.back, 1 << 20)
            assert more, "the browser has gone"
            self.rest += more
        one, _, self.rest = self.rest.partition(b"\0")
        return json.loads(one)

    def _note(self, event: dict[str, Any]) -> None:
        method, said = event.get("method"), event.get("params", {})
        if method == "Runtime.exceptionThrown" or (method == "Runtime.consoleAPICalled" and said["type"] in ("error", "warning", "assert")):
            self.errors.append(json.dumps(said)[:2000])
        if method == "Log.entryAdded" and said["entry"]["level"] == "error":
            self.errors.append(json.dumps(said["entry"])[:2000])
        if method == "Network.requestWillBeSent":
            self.requests.append(said["request"]["url"])

    def run(self, script: str) -> Any:
        """The value of a script; promises are waited for."""
        answer = self.ask("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def open(self, file: Path, seconds: float = 60.0) -> None:
        """Open a page and wait until it is drawn."""
        self.ask("Page.navigate", url=file.absolute().as_uri())
        waiting = f"""new Promise((done, failed) => {{
          const end = Date.now() + {1000 * seconds};
          const look = () => {{
            const trouble = document.getElementById("trouble")?.textContent || (Date.now() > end && "not ready");
            if (window.bismut?.ready) requestAnimationFrame(() => requestAnimationFrame(done));
            else if (trouble) failed(new Error(trouble));
            else setTimeout(look, 50);
          }};
          look();
        }})"""
        self.run(waiting)

    def show(self, frame: int) -> None:
        """Move the slider, as a hand would, and wait until it is drawn."""
        self.run(
            f"""new Promise((done) => {{ const slider = document.getElementById("slider"); slider.value = {frame};
            slider.dispatchEvent(new Event("input", {{bubbles: true}})); requestAnimationFrame(() => requestAnimationFrame(done)); }})"""
        )

    def picture(self, file: Path) -> Path:
        """What is seen, as a PNG."""
        file.write_bytes(b64decode(self.ask("Page.captureScreenshot", format="png")["data"]))
        return file

    def close(self) -> None:
        self.process.terminate()
        self.process.wait(10)
        os.close(self.to)
        os.close(self.back)
        self.folder.cleanup()
