"""A headless Chromium, driven through pipes by the DevTools protocol."""

import base64
import fcntl
import json
import os
import select
import shutil
import subprocess
import sys
import tempfile
import time
from contextlib import suppress

PROGRAMS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--remote-debugging-pipe",
]
PATIENCE = 30.0  # seconds
# The browser reads from 3 and writes to 4.
START = """import os, sys
os.dup2(int(sys.argv[1]), 3)
os.dup2(int(sys.argv[2]), 4)
os.execv(sys.argv[3], sys.argv[3:])
"""


def program():
    """The path of Chromium, or None."""
    return next(filter(None, map(shutil.which, PROGRAMS)), None)


def _pipe():
    """Ends of a pipe with numbers above those that the browser wants."""
    ends = os.pipe()
    moved = tuple(fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 10) for end in ends)
    for end in ends:
        os.close(end)
    return moved


class Browser:
    """A browser that runs until its context ends."""

    def __enter__(self):
        self._profile = tempfile.mkdtemp(prefix="report-browser-")
        commands, self._commands = _pipe()
        self._answers, answers = _pipe()
        command = [program(), *FLAGS, f"--user-data-dir={self._profile}", "about:blank"]
        self._process = subprocess.Popen(
            [sys.executable, "-IS", "-c", START, str(commands), str(answers), *command],
            pass_fds=(commands, answers),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(commands)
        os.close(answers)
        self._received, self._number, self.events = b"", 0, []
        return self

    def __exit__(self, *error):
        with suppress(OSError, TimeoutError):
            self.call("Browser.close")
        try:
            self._process.wait(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        os.close(self._commands)
        os.close(self._answers)
        shutil.rmtree(self._profile, ignore_errors=True)

    def call(self, method, session=None, **parameters):
        """The result of a method."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if session is not None:
            message["sessionId"] = session
        os.write(self._commands, json.dumps(message).encode() + b"\0")
        answer = self._wait(lambda message: message.get("id") == self._number)
        if "error" in answer:
            raise RuntimeError(f"{method}: {answer['error']}")
        return answer["result"]

    def wait(self, event, session):
        """Wait until an event happens, if it has not."""
        for past in self.events:
            if (past["method"], past.get("sessionId")) == (event, session):
                return
        self._wait(lambda m: (m.get("method"), m.get("sessionId")) == (event, session))

    def _wait(self, wanted):
        end = time.monotonic() + PATIENCE
        while True:
            while b"\0" in self._received:
                first, _, self._received = self._received.partition(b"\0")
                message = json.loads(first)
                if "method" in message:
                    self.events.append(message)
                if wanted(message):
                    return message
            ready, _, _ = select.select([self._answers], [], [], max(end - time.monotonic(), 0.0))
            if not ready:
                raise TimeoutError(f"The browser said nothing for {PATIENCE} seconds.")
            received = os.read(self._answers, 1 << 20)
            if not received:
                raise OSError("The browser has gone.")
            self._received += received


class Page:
    """A page of a browser, loaded from a file."""

    def __init__(self, browser, path, width=1200, height=900, scale=1, **media):
        self._browser = browser
        target = browser.call("Target.createTarget", url="about:blank")["targetId"]
        attached = browser.call("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")
        size = {"width": width, "height": height, "deviceScaleFactor": scale}
        self.call("Emulation.setDeviceMetricsOverride", **size, mobile=width < 600)
        features = [{"name": name.replace("_", "-"), "value": v} for name, v in media.items()]
        self.call("Emulation.setEmulatedMedia", features=features)
        self.call("Page.navigate", url=path.absolute().as_uri())
        browser.wait("Page.loadEventFired", self._session)

    def call(self, method, **parameters):
        """The result of a method on this page."""
        return self._browser.call(method, self._session, **parameters)

    def evaluate(self, expression):
        """The value of a JavaScript expression."""
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in result, result
        return result["result"]["value"]

    def events(self, method):
        """What has happened on this page, by the name of the event."""
        self.evaluate("0")  # what came before is here with the answer
        mine = [e for e in self._browser.events if e.get("sessionId") == self._session]
        return [event["params"] for event in mine if event["method"] == method]

    def complaints(self):
        """Everything that a console would show."""
        logged = [event["entry"]["text"] for event in self.events("Log.entryAdded")]
        said = [str(event["args"]) for event in self.events("Runtime.consoleAPICalled")]
        return logged + said + [str(event) for event in self.events("Runtime.exceptionThrown")]

    def requests(self):
        """The addresses that the page has asked for."""
        return [event["request"]["url"] for event in self.events("Network.requestWillBeSent")]

    def screenshot(self):
        """The whole page as a PNG file."""
        how = {"format": "png", "captureBeyondViewport": True}
        return base64.b64decode(self.call("Page.captureScreenshot", **how)["data"])

    def pdf(self):
        """The page as it prints, a PDF file."""
        how = {"preferCSSPageSize": True}
        return base64.b64decode(self.call("Page.printToPDF", **how)["data"])
