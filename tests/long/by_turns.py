"""For the scripts beside this file that measure in turns: servers, their CPU time and memory, and ratios by
rounds."""

import os
import re
import socket
import statistics
import subprocess
import time

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "../.."))
PEERS = os.environ.get("PEERS", ROOT + "/benches/peers/target/release")


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


class Server:
    """One that listens on a free port; `command` makes its command line of that."""

    def __init__(self, command, **environment):
        self.port = free_port()
        self.process = subprocess.Popen(command(self.port), env={**os.environ, **environment}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        wait_for(self.port, self.process.args[0])

    def cpu(self):
        """utime + stime in seconds, of all its threads, those that have ended included: by the process's own clock, which
        /proc/PID/stat rounds to hundredths."""
        return time.clock_gettime(~self.process.pid << 3 | 2)

    def private_kib(self):
        text = open(f"/proc/{self.process.pid}/smaps_rollup").read()
        return sum(int(n) for n in re.findall(r"Private_(?:Clean|Dirty): +(\d+)", text))

    def kill(self):
        self.process.kill()
        self.process.wait()


def wait_for(port, program):
    until = time.time() + 60
    while time.time() < until:
        try:
            return socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            time.sleep(0.05)
    raise SystemExit(f"{program} does not listen on port {port}: it may be of an older state of its source")


def spread(values, digits=2):
    return f"{statistics.median(values):.{digits}f} ({min(values):.{digits}f}–{max(values):.{digits}f})"


class Table:
    """What each contender came to in each round, and the first one's ratio to it."""

    def __init__(self, contenders):
        self.contenders, self.rows = contenders, {}

    def add(self, what, contender, value):
        self.rows.setdefault(what, {}).setdefault(contender, []).append(value)

    def print(self):
        """A table for a document: the median with its range, and the median of the rounds' ratios."""
        print("| | " + " | ".join(self.contenders) + " |")
        print("|--" * (len(self.contenders) + 1) + "|")
        for what, of in self.rows.items():
            cells = [spread(of[one]) if one in of else "–" for one in self.contenders]
            print(f"| {what} | " + " | ".join(cells) + " |")
            first = of.get(self.contenders[0])
            if first:
                # A contender that failed in a round has fewer values, and it is unknown which round is missing.
                whole = {one for one in of if len(of[one]) == len(first)}
                ratios = [spread([a / b for a, b in zip(first, of[one])]) if one in whole else "–" for one in self.contenders[1:]]
                print(f"| … × each, by rounds | | " + " | ".join(ratios) + " |")
