"""Servers for the scripts beside this file: started on a free port, watched through /proc, and stopped cleanly."""

import atexit
import os
import pathlib
import re
import resource
import signal
import socket
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
TARGET = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
MIB = 1 << 20
# What is registered with `atexit` is run then.
signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))


def build(*examples):
    """Builds examples in the release profile."""
    names = [word for name in examples for word in ("--example", name)]
    subprocess.run(["cargo", "build", "--release", "--locked", "--quiet", "-p", "rotor", "-p", "rotor-examples", *names], cwd=ROOT, check=True)


def example(name):
    """Where `build` has left an example."""
    return TARGET / "release/examples" / name


def raise_descriptor_limit():
    """Raises the limit of descriptors, also for what is started from here on, to the most allowed; answers it."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return hard


def free_address():
    """Of a port that was free a moment ago: for programs that cannot tell which one they were given."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        return free.getsockname()


class Server:
    """One of our examples, or another program that runs in the foreground; the options are those of `Popen`."""

    def __init__(self, command, address=None, **options):
        options = {"stdout": subprocess.PIPE, "text": True, "start_new_session": True, **options}
        self.process = subprocess.Popen(command, **options)
        # However the script ends; Ctrl-C does not reach other sessions.
        atexit.register(self.kill)
        self.address = address
        while self.address is None:
            line = self.process.stdout.readline()
            if not line:
                raise SystemExit(f"{command[0]} ended without saying where it listens")
            if found := re.search(r"listening on (?:https?://)?([0-9.]+):([0-9]+)", line):
                self.address = (found[1], int(found[2]))

    @classmethod
    def example(cls, name, *arguments, **options):
        return cls([example(name), "127.0.0.1:0", *map(str, arguments)], **options)

    @classmethod
    def listening(cls, command, address, **options):
        """A program that does not say where it listens; returns once it does."""
        server = cls(command, address, **options)
        server.wait_for(address)
        return server

    def wait_for(self, address):
        """Waits until something accepts connections there."""
        until = time.monotonic() + 60
        while True:
            try:
                return socket.create_connection(address, 1).close()
            except OSError:
                if self.process.poll() is not None or time.monotonic() > until:
                    raise SystemExit(f"{self.process.args[0]} does not listen on port {address[1]}: is it up to date?")
                time.sleep(0.01)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.kill()

    def kill(self):
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)  # With the workers that it has started.
            self.process.wait()
        if self.process.stdout:
            self.process.stdout.close()

    def end(self):
        """Asks it to end; answers what it has printed since. Fails when it does not end well."""
        self.process.send_signal(signal.SIGTERM)
        output, _ = self.process.communicate(timeout=30)
        assert self.process.returncode == 0, f"it ended with {self.process.returncode}"
        return output.strip().splitlines()

    def memory(self):
        """Resident memory that it does not share with a file, in bytes: what it has allocated and used."""
        status = pathlib.Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(r"RssAnon:\s+(\d+) kB", status)[1]) * 1024

    def descriptors(self):
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))

    def cpu(self):
        """CPU seconds of it and its children, with threads that have ended: by the clocks of the processes, which
        /proc/PID/stat rounds to hundredths."""
        children = pathlib.Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        return sum(time.clock_gettime(~int(pid) << 3 | 2) for pid in [self.process.pid, *children])
