"""Debian's Chromium, driven through its own debugging pipe: no driver and no package is needed.

Source: Chrome DevTools Protocol; messages are JSON objects, each ended by a zero byte, on descriptors 3
and 4.
"""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import subprocess
import time
from pathlib import Path
from types import TracebackType
from typing import Any

FLAGS = [
    "--headless",
    "--no-sandbox",  # tests run as root
    "--use-angle=swiftshader",  # draws without a graphics card
    "--enable-unsafe-swiftshader",
    "--ignore-gpu-blocklist",
    "--remote-debugging-pipe",
    "--no-first-run",  # this and the rest: nothing is asked of the network
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-quic",
    "--disable-extensions",
]

PATIENCE = 120.0
"""Longest wait for an answer or a state of the page, s."""


def program() -> str | None:
    """Path of Chromium, None if it is not installed."""
    return shutil.which("chromium") or shutil.which("chromium-browser")


class Browser:
    """One headless browser with one page, of `size` CSS pixels and `scale` device pixels per CSS pixel."""

    def __init__(self, profile: Path, size: tuple[int, int] = (1280, 720), scale: float = 1.0) -> None:
        ours_in, theirs_out = os.pipe()
        theirs_in, ours_out = os.pipe()
        command = [str(program()), *FLAGS, f"--user-data-dir={profile}", "about:blank"]
        # bash puts the two ends where Chromium looks for them.
        words = ["bash", "-c", f'exec "$@" 3<&{theirs_in} 4>&{theirs_out}', "bash", *command]
        self._process = subprocess.Popen(words, pass_fds=(theirs_in, theirs_out), stderr=subprocess.DEVNULL)
        os.close(theirs_in)
        os.close(theirs_out)
        self._in, self._out, self._held, self._number = ours_in, ours_out, b"", 0
        self.said: list[str] = []
        self.session: str | None = None
        targets = self.send("Target.getTargets")["targetInfos"]
        page = next(target["targetId"] for target in targets if target["type"] == "page")
        self.session = self.send("Target.attachToTarget", targetId=page, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.send(f"{domain}.enable")
        self.send("Emulation.setTouchEmulationEnabled", enabled=True)
        self.resize(size, scale)

    def __enter__(self) -> Browser:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.terminate()
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            self._process.kill()
        os.close(self._in)
        os.close(self._out)

    def send(self, method: str, **parameters: Any) -> Any:
        """Call a method of the protocol and wait for its answer; what is said meanwhile is kept in `said`."""
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        until = time.monotonic() + PATIENCE
        while True:
            while b"\0" in self._held:
                one, self._held = self._held.split(b"\0", 1)
                answer = json.loads(one)
                if answer.get("id") == self._number:
                    assert "error" not in answer, answer["error"]
                    return answer["result"]
                self._listen(answer)
            assert select.select([self._in], [], [], max(0.0, until - time.monotonic()))[0], (
                f"{method}: silence"
            )
            part = os.read(self._in, 1 << 16)
            assert part, f"{method}: Chromium has ended"
            self._held += part

    def _listen(self, event: dict[str, Any]) -> None:
        """Remember errors, what the page prints, and every address it asks for."""
        method, told = event.get("method"), event.get("params", {})
        if method == "Runtime.exceptionThrown":
            self.said.append(f"exception: {told['exceptionDetails']}")
        elif method == "Runtime.consoleAPICalled":
            self.said.append(f"console: {told['type']}: {told['args']}")
        elif method == "Log.entryAdded":
            self.said.append(f"log: {told['entry']}")
        elif method == "Network.requestWillBeSent" and not told["request"]["url"].startswith("file:"):
            self.said.append(f"request: {told['request']['url'][:100]}")

    def resize(self, size: tuple[int, int], scale: float = 1.0, mobile: bool = False) -> None:
        self.send(
            "Emulation.setDeviceMetricsOverride",
            width=size[0], height=size[1], deviceScaleFactor=scale, mobile=mobile,
        )  # fmt: skip

    def open(self, path: Path) -> None:
        """Open a file as a double click does, and wait until it has drawn itself."""
        self.send("Page.navigate", url=path.resolve().as_uri())
        self.wait("window.ecsFluidPage && ecsFluidPage.state().drawn")

    def value(self, expression: str) -> Any:
        """What an expression of JavaScript is, as JSON."""
        answer = self.send("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def wait(self, expression: str) -> None:
        """Wait until an expression is true."""
        until = time.monotonic() + PATIENCE
        while True:
            answer = self.send("Runtime.evaluate", expression=f"Boolean({expression})", returnByValue=True)
            if answer["result"].get("value") is True:
                return
            assert time.monotonic() < until, f"not within {PATIENCE:g} s: {expression}; {self.said}"
            time.sleep(0.05)

    def state(self) -> dict[str, Any]:
        """What the viewer says of itself."""
        found: dict[str, Any] = self.value("ecsFluidPage.state()")
        return found

    def key(self, key: str, shift: bool = False) -> None:
        text = {"text": key} if len(key) == 1 else {}
        for kind in ("keyDown", "keyUp"):
            self.send("Input.dispatchKeyEvent", type=kind, key=key, modifiers=8 * shift, **text)

    def mouse(self, *path: tuple[float, float]) -> None:
        """Press at the first place, go to the others, release at the last."""
        kinds = ["mousePressed", *["mouseMoved"] * (len(path) - 1), "mouseReleased"]
        for kind, (x, y) in zip(kinds, [*path, path[-1]], strict=True):
            place = {"x": float(x), "y": float(y)}
            self.send("Input.dispatchMouseEvent", type=kind, button="left", buttons=1, clickCount=1, **place)

    def touch(self, *path: list[tuple[float, float]]) -> None:
        """Put fingers down at the first places, move them through the others, lift them."""
        for k, places in enumerate(path):
            points = [{"x": x, "y": y, "id": finger} for finger, (x, y) in enumerate(places)]
            self.send("Input.dispatchTouchEvent", type="touchMove" if k else "touchStart", touchPoints=points)
        self.send("Input.dispatchTouchEvent", type="touchEnd", touchPoints=[])

    def box(self, selector: str) -> tuple[float, float, float, float]:
        """Left, top, width and height of an element, in CSS pixels."""
        corners = self.value(
            f"(() => {{ const b = document.querySelector({json.dumps(selector)}).getBoundingClientRect();"
            " return [b.left, b.top, b.width, b.height]; })()"
        )
        return (corners[0], corners[1], corners[2], corners[3])

    def screenshot(self, path: Path) -> Path:
        """Write what is to be seen as PNG."""
        path.write_bytes(base64.b64decode(self.send("Page.captureScreenshot")["data"]))
        return path
