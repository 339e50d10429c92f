"""A headless Chromium for tests, spoken to over its own debugging pipe.

The pipe (file descriptors 3 and 4, JSON messages ended by NUL) needs no port and no websocket
library, and its end ends the browser. Everything the browser says about itself is kept:
console messages, uncaught exceptions, violations of the content policy.
"""

import contextlib
import fcntl
import json
import os
import select
import shutil
import signal
import subprocess
import tempfile
import time
from base64 import b64decode
from collections.abc import Iterator
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
SECONDS = 60.0
"""For any one answer on a loaded machine."""

FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-default-apps",
    "--disable-dev-shm-usage",
    "--disable-extensions",
    "--disable-sync",
    "--hide-scrollbars",
    "--force-color-profile=srgb",
    "--remote-debugging-pipe",
)


def find() -> str | None:
    """The browser of this machine, None where there is none."""
    if shutil.which("bash") is None:
        return None
    return next((path for name in NAMES if (path := shutil.which(name))), None)


def _high(fd: int) -> int:
    """The same descriptor out of the way of 3 and 4."""
    moved = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 20)
    os.close(fd)
    return moved


class Browser:
    """One browser process with a profile of its own."""

    def __init__(self, program: str) -> None:
        self._profile = tempfile.mkdtemp(prefix="lr-browser", dir="/tmp")
        ours_in, theirs_out = (_high(fd) for fd in os.pipe())
        theirs_in, ours_out = (_high(fd) for fd in os.pipe())
        # The shell moves the ends to where the browser looks for them, then becomes it. A POSIX
        # shell need not know descriptors above 9.
        script = f'exec "$@" 3<&{theirs_in} 4>&{theirs_out}'
        self._process = subprocess.Popen(
            ["bash", "-c", script, "bash", program, *FLAGS, f"--user-data-dir={self._profile}"],
            pass_fds=(theirs_in, theirs_out),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={"PATH": os.environ["PATH"], "HOME": self._profile, "LANG": "C.UTF-8"},
            start_new_session=True,
        )
        os.close(theirs_in)
        os.close(theirs_out)
        self._in, self._out = ours_in, ours_out
        self._buffer = b""
        self._serial = 0
        self.events: list[dict[str, Any]] = []

    def close(self) -> None:
        """End the browser and everything it started, and remove its profile."""
        with contextlib.suppress(AssertionError, OSError):
            self.call("Browser.close")
        for fd in (self._in, self._out):
            os.close(fd)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(10)
        # Helpers of the browser are in the session that we opened for it.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        shutil.rmtree(self._profile, ignore_errors=True)

    def call(self, method: str, session: str | None = None, **params: Any) -> dict[str, Any]:
        """One command of the DevTools protocol and its result."""
        self._serial += 1
        message: dict[str, Any] = {"id": self._serial, "method": method, "params": params}
        if session is not None:
            message["sessionId"] = session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        deadline = time.monotonic() + SECONDS
        while True:
            found = self._read(deadline)
            assert found is not None, f"{method}: no answer"
            if found.get("id") == self._serial:
                assert "error" not in found, f"{method}: {found['error']}"
                result: dict[str, Any] = found["result"]
                return result
            self.events.append(found)

    def wait_event(self, method: str, session: str, seconds: float = SECONDS) -> dict[str, Any]:
        """The next event of that name that was not taken yet."""
        deadline = time.monotonic() + seconds
        while True:
            for event in self.events:
                if event.get("method") == method and event.get("sessionId") == session:
                    self.events.remove(event)
                    params: dict[str, Any] = event["params"]
                    return params
            found = self._read(deadline)
            assert found is not None, f"no {method}"
            self.events.append(found)

    def _read(self, deadline: float) -> dict[str, Any] | None:
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._in], [], [], max(deadline - time.monotonic(), 0))
            if not ready:
                return None
            piece = os.read(self._in, 1 << 20)
            assert piece, "the browser ended"
            self._buffer += piece
        message, _, self._buffer = self._buffer.partition(b"\0")
        found: dict[str, Any] = json.loads(message)
        return found


class Tab:
    """One page, in a context without anything of another tab."""

    def __init__(self, browser: Browser) -> None:
        self._browser = browser
        context = browser.call("Target.createBrowserContext")["browserContextId"]
        target = browser.call("Target.createTarget", url="about:blank", browserContextId=context)[
            "targetId"
        ]
        self._context = context
        self._session = browser.call("Target.attachToTarget", targetId=target, flatten=True)[
            "sessionId"
        ]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        """One command to this page."""
        return self._browser.call(method, self._session, **params)

    def close(self) -> None:
        """Close it with its cookies."""
        self._browser.call("Target.disposeBrowserContext", browserContextId=self._context)

    def open(self, address: str) -> None:
        """Go there and wait until it is loaded."""
        self._forget_loads()
        answer = self.call("Page.navigate", url=address)
        assert "errorText" not in answer, answer
        if "loaderId" in answer:  # else only the fragment changed
            self._browser.wait_event("Page.loadEventFired", self._session)

    def go(self, script: str) -> None:
        """Run ``script``, which leads to another page, and wait until that is loaded."""
        self._forget_loads()
        self.js(script)
        self._browser.wait_event("Page.loadEventFired", self._session)

    def _forget_loads(self) -> None:
        self._browser.events = [
            event
            for event in self._browser.events
            if event.get("method") != "Page.loadEventFired"
            or event.get("sessionId") != self._session
        ]

    def js(self, expression: str) -> Any:
        """The value of an expression; promises are awaited."""
        answer = self.call(
            "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def until(self, expression: str, seconds: float = SECONDS) -> Any:
        """Wait until an expression is true and return it. Asked every 50 ms, of the next page too
        when it leads on."""
        look = (
            f"const found = ({expression}); if (found) done(found);"
            "else if (Date.now() > end) fail(new Error('never')); else setTimeout(look, 50);"
        )
        script = (
            f"new Promise((done, fail) => {{ const end = Date.now() + {seconds * 1000};"
            f"const look = () => {{ {look} }}; look(); }})"
        )
        while True:
            try:
                return self.js(script)
            except AssertionError as error:
                if "navigated" not in str(error):  # else the page it was asked of is gone
                    raise

    def press(self, key: str) -> None:
        """One key."""
        code = {"Enter": 13, "Tab": 9}.get(key, ord(key[0].upper()))
        text = {"Enter": "\r", "Tab": ""}.get(key, key)
        self.call(
            "Input.dispatchKeyEvent",
            type="keyDown",
            key=key,
            text=text,
            windowsVirtualKeyCode=code,
        )
        self.call("Input.dispatchKeyEvent", type="keyUp", key=key, windowsVirtualKeyCode=code)

    def look(self, *, width: int, height: int, dark: bool = False, script: bool = True) -> None:
        """Set the window's size, the colour scheme and whether scripts run."""
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=width < 600,
        )
        scheme = "dark" if dark else "light"
        self.call(
            "Emulation.setEmulatedMedia",
            features=[{"name": "prefers-color-scheme", "value": scheme}],
        )
        self.call("Emulation.setScriptExecutionDisabled", value=not script)

    def shoot(self, path: Path, *, whole: bool = True) -> None:
        """A picture of the page as a PNG file."""
        data = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        path.write_bytes(b64decode(data["data"]))

    def forget(self) -> None:
        """Drop what was said so far."""
        self.js("1")
        self._browser.events = [
            event for event in self._browser.events if event.get("sessionId") != self._session
        ]

    def complaints(self) -> list[str]:
        """Errors and warnings of console, network and policy, and uncaught exceptions so far."""
        self.js("1")  # what happened before is delivered before this answer
        found = []
        for event in self._browser.events:
            if event.get("sessionId") != self._session:
                continue
            params = event.get("params", {})
            if event["method"] == "Runtime.exceptionThrown":
                found.append(str(params["exceptionDetails"]))
            elif event["method"] == "Log.entryAdded":
                entry = params["entry"]
                if entry["level"] in ("error", "warning"):
                    found.append(f"{entry['source']}: {entry['text']} {entry.get('url', '')}")
            elif event["method"] == "Runtime.consoleAPICalled":
                if params["type"] in ("error", "warning", "assert"):
                    found.append(str(params["args"]))
            elif event["method"] == "Page.javascriptDialogOpening":
                found.append(f"dialog: {params['message']}")
        return found


@contextlib.contextmanager
def run(program: str) -> Iterator[Browser]:
    """A browser until the block ends."""
    browser = Browser(program)
    try:
        yield browser
    finally:
        browser.close()
