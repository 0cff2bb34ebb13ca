"""CPU time of brokers for each delivery: cpu.py ROUNDS BATCHES OURS MOSQUITTO."""

import os
import selectors
import socket
import statistics
import subprocess
import sys
import tempfile
import time

ROUNDS, BATCHES = int(sys.argv[1]), int(sys.argv[2])
OURS, MOSQUITTO = sys.argv[3], sys.argv[4]
SUBSCRIBERS, BATCH, PAYLOAD = 10, 20, b"x" * 64
PATIENCE = 60
TICK = os.sysconf("SC_CLK_TCK")


def packet(first, *parts):
    rest = b"".join(parts)
    assert len(rest) < 128
    return bytes([first, len(rest)]) + rest


def text(value):
    return len(value).to_bytes(2, "big") + value


def connect(port, name):
    client = socket.create_connection(("127.0.0.1", port), PATIENCE)
    client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    client.sendall(packet(0x10, text(b"MQTT"), b"\x04\x02\0\0", text(name)))
    receive(client, 4)
    return client


def receive(client, count):
    received = b""
    while len(received) < count:
        more = client.recv(count - len(received))
        assert more, "the broker has ended a connection"
        received += more
    return received


def cpu_seconds(pid):
    with open(f"/proc/{pid}/stat") as stat:
        fields = stat.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICK


def load(port, pid, qos):
    """Seconds of CPU for each delivery."""
    hearers = [connect(port, b"hearer%d" % number) for number in range(SUBSCRIBERS)]
    for hearer in hearers:
        hearer.sendall(packet(0x82, b"\0\x01", text(b"load/#"), bytes([qos])))
        receive(hearer, 5)
    speaker = connect(port, b"speaker")
    size = len(packet(0x30, text(b"load/x"), b"\0\0" if qos else b"", PAYLOAD))
    batch = b"".join(packet(0x32, text(b"load/x"), (1 + at).to_bytes(2, "big"), PAYLOAD) for at in range(BATCH))
    before = 0
    for number in range(BATCHES + BATCHES // 10):
        if number == BATCHES // 10:
            before = cpu_seconds(pid)
        speaker.sendall(batch)
        receive(speaker, 4 * BATCH)
        for hearer in hearers:
            heard = receive(hearer, size * BATCH)
            if qos:
                ids = range(10, size * BATCH, size)
                hearer.sendall(b"".join(b"\x40\x02" + heard[at:at + 2] for at in ids))
    spent = cpu_seconds(pid) - before
    for client in hearers + [speaker]:
        client.sendall(b"\xe0\0")
        client.close()
    return spent / (BATCHES * BATCH * SUBSCRIBERS)


def port_that_listens(process, port):
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until and process.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", port)).close()
            return port
        except ConnectionRefusedError:
            time.sleep(0.05)
    sys.exit("a broker does not listen")


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def start(which):
    port = free_port()
    if which == "rotor":
        command = [OURS, f"127.0.0.1:{port}"]
    else:
        config = tempfile.NamedTemporaryFile("w", suffix=".conf", delete=False)
        config.write(f"listener {port} 127.0.0.1\nallow_anonymous true\nset_tcp_nodelay true\nlog_type none\n")
        config.close()
        command = [MOSQUITTO, "-c", config.name]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return process, port_that_listens(process, port)


for qos in (0, 1):
    costs = {"rotor": [], "mosquitto": []}
    for _ in range(ROUNDS):
        for which, seen in costs.items():
            process, port = start(which)
            try:
                seen.append(load(port, process.pid, qos) * 1e6)
            finally:
                process.terminate()
                process.wait()
    medians = {which: statistics.median(seen) for which, seen in costs.items()}
    for which, seen in costs.items():
        print(f"QoS {qos}  {which:<10} {medians[which]:6.2f} µs a delivery   ({min(seen):.2f} to {max(seen):.2f})")
    print(f"QoS {qos}  rotor / mosquitto: {medians['rotor'] / medians['mosquitto']:.2f}")
