"""For the scripts beside this file that measure in turns: servers, their CPU time and memory, and ratios by
rounds."""

import os
import re
import statistics
import subprocess

import servers

PEERS = os.environ.get("PEERS", f"{servers.ROOT}/benches/peers/target/release")


class Server(servers.Server):
    """One that listens on a free port; `command` makes its command line of that."""

    def __init__(self, command, **environment):
        address = servers.free_address()
        self.port = address[1]
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        super().__init__(command(self.port), address, env={**os.environ, **environment}, **quiet)
        self.wait_for(address)

    def private_kib(self):
        text = open(f"/proc/{self.process.pid}/smaps_rollup").read()
        return sum(int(n) for n in re.findall(r"Private_(?:Clean|Dirty): +(\d+)", text))


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
