"""Servers for the scripts beside this file: started on a free port, watched through /proc, and stopped cleanly."""

import os
import pathlib
import re
import resource
import signal
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
TARGET = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
MIB = 1 << 20


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


class Server:
    """One of our examples, or another program that runs in the foreground."""

    def __init__(self, command, address=None, stderr=None):
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=stderr, text=True, start_new_session=True)
        self.address = address
        while self.address is None:
            line = self.process.stdout.readline()
            if not line:
                raise SystemExit(f"{command[0]} ended without saying where it listens")
            if found := re.search(r"listening on (?:https?://)?([0-9.]+):([0-9]+)", line):
                self.address = (found[1], int(found[2]))

    @classmethod
    def example(cls, name, *arguments):
        return cls([example(name), "127.0.0.1:0", *map(str, arguments)])

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)  # With the workers that it has started.
            self.process.wait()
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
        """CPU seconds of it and its children, as the scheduler counts them: to the nanosecond."""
        children = pathlib.Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        threads = [thread for pid in [self.process.pid, *children] for thread in pathlib.Path(f"/proc/{pid}/task").iterdir()]
        return sum(int((thread / "schedstat").read_text().split()[0]) for thread in threads) / 1e9
