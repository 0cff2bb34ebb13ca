"""Headless Chromium, controlled by its DevTools protocol: for the tests that look at pages."""

import base64
import contextlib
import json
import os
import re
import select
import signal
import socket
import subprocess
import tempfile
import time
import urllib.request

CHROMIUM = os.environ.get("ROTOR_CHROMIUM", "chromium")
PATIENCE = 30  # Seconds for anything: far more than it takes.


class Program:
    """A program in a process group of its own, which is killed at the end."""

    def __init__(self, command, **options):
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True, **options)
        self.said = b""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(PATIENCE)

    def find(self, pattern):
        """What it says that looks so."""
        until = time.monotonic() + PATIENCE
        while not (found := re.search(pattern, self.said)):
            readable, _, _ = select.select([self.process.stdout], [], [], max(0, until - time.monotonic()))
            more = os.read(self.process.stdout.fileno(), 65536) if readable else b""
            if not more:
                raise SystemExit(f"{self.process.args[0]} does not say {pattern}: {self.said.decode(errors='replace')}")
            self.said += more
        return found[1].decode()


class Tab:
    """A tab of the browser, by the DevTools protocol over a WebSocket (RFC 6455)."""

    def __init__(self, url):
        host, path = re.fullmatch(r"ws://([^/]+)(/.*)", url).groups()
        address, port = host.rsplit(":", 1)
        self.socket = socket.create_connection((address, int(port)), PATIENCE)
        key = base64.b64encode(os.urandom(16)).decode()
        self.socket.sendall(f"GET {path} HTTP/1.1\r\nHost: {host}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                            f"Sec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n\r\n".encode())
        self.input = self.socket.makefile("rb")
        assert b" 101 " in self.input.readline(), "no WebSocket"
        while self.input.readline() != b"\r\n":
            pass
        self.calls, self.complaints = 0, []

    def receive(self):
        message = b""
        while True:
            first, second = self.input.read(2)
            length = second & 0x7F
            if length > 125:
                length = int.from_bytes(self.input.read(2 if length == 126 else 8), "big")
            payload = self.input.read(length)
            if first & 0x0F > 2:  # Of control frames it needs none.
                continue
            message += payload
            if first & 0x80:
                return json.loads(message)

    def call(self, method, **parameters):
        self.calls += 1
        payload = json.dumps({"id": self.calls, "method": method, "params": parameters}).encode()
        size = len(payload)
        length = bytes([0x80 | size]) if size < 126 else b"\xfe" + size.to_bytes(2, "big")
        self.socket.sendall(b"\x81" + length + bytes(4) + payload)  # Masked with zeros.
        until = time.monotonic() + PATIENCE
        while time.monotonic() < until:
            message = self.receive()
            if message.get("method") == "Log.entryAdded" and message["params"]["entry"]["level"] == "error":
                entry = message["params"]["entry"]
                self.complaints.append(f"{entry['text']} {entry.get('url', '')}")
            if message.get("method") == "Runtime.exceptionThrown":
                self.complaints.append(json.dumps(message["params"]["exceptionDetails"]))
            if message.get("id") == self.calls:
                if "error" in message:
                    raise SystemExit(f"{method}: {message['error']}")
                return message["result"]
        raise SystemExit(f"{method}: no answer")

    def evaluate(self, script):
        result = self.call("Runtime.evaluate", expression=script, returnByValue=True)
        if "exceptionDetails" in result:
            raise SystemExit(f"{script}: {result['exceptionDetails']}")
        return result["result"].get("value")

    def wait_for(self, what, script):
        until = time.monotonic() + PATIENCE
        while not (value := self.evaluate(script)):
            if time.monotonic() > until:
                raise SystemExit(f"not seen: {what}\n{self.evaluate('document.body.innerText')[:3000]}")
            time.sleep(0.05)
        if what:
            print(f"seen: {what}")
        return value

    def size(self, width, height):
        """As if the window were so large, in pixels."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def picture(self, path, bytes_max):
        """What is in the window, as PNG."""
        shot = base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"])
        assert len(shot) <= bytes_max, f"the picture has {len(shot)} bytes"
        with open(path, "wb") as file:
            file.write(shot)

    def click(self, script):
        """Clicks where the element is, as a mouse does."""
        found = self.wait_for(f"something to click: {script}", f"""(() => {{ const it = {script}; if (!it) return null;
            it.scrollIntoView({{ block: "center" }}); const at = it.getBoundingClientRect();
            return {{ x: at.x + at.width / 2, y: at.y + at.height / 2 }}; }})()""")
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=found["x"], y=found["y"], button="left", clickCount=1)


@contextlib.contextmanager
def opened(*options):
    """A browser with one tab, that says what a page complains of."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        options = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
                   "--remote-debugging-port=0", f"--user-data-dir={profile}", *options, "about:blank"]
        with Program([CHROMIUM, *options], env={**os.environ, "HOME": profile}) as browser:
            devtools = browser.find(rb"DevTools listening on ws://([0-9.:]+)/")
            with urllib.request.urlopen(f"http://{devtools}/json/list", timeout=PATIENCE) as answer:
                tabs = [tab for tab in json.load(answer) if tab["type"] == "page"]
            tab = Tab(tabs[0]["webSocketDebuggerUrl"])
            for domain in ("Log", "Runtime", "Page"):
                tab.call(f"{domain}.enable")
            yield tab
