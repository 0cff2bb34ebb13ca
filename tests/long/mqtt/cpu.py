"""CPU time of brokers per delivery, without and over TLS: cpu.py ROUNDS BATCHES DIRECTORY OURS TOKIO MOSQUITTO.

TOKIO and MOSQUITTO may be empty. The script writes a certificate into DIRECTORY.
"""

import os
import socket
import ssl
import statistics
import subprocess
import sys
import time

ROUNDS, BATCHES = int(sys.argv[1]), int(sys.argv[2])
DIRECTORY = sys.argv[3]
BROKERS = {name: path for name, path in zip(("rotor", "tokio", "mosquitto"), sys.argv[4:]) if path}
CHAIN, KEY = os.path.join(DIRECTORY, "chain.pem"), os.path.join(DIRECTORY, "key.pem")
SUBSCRIBERS, BATCH, PAYLOAD = 10, 20, b"x" * 64
PATIENCE = 60


def packet(first, *parts):
    rest = b"".join(parts)
    assert len(rest) < 128
    return bytes([first, len(rest)]) + rest


def text(value):
    return len(value).to_bytes(2, "big") + value


def connect(port, tls, name):
    client = socket.create_connection(("127.0.0.1", port), PATIENCE)
    client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    if tls:
        client = tls.wrap_socket(client, server_hostname="localhost")
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
    """Of its threads, as the scheduler counts them: in nanoseconds."""
    spent = 0
    for thread in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{thread}/schedstat") as stat:
            spent += int(stat.read().split()[0])
    return spent / 1e9


def load(port, tls, pid, qos):
    """Seconds of CPU for each delivery."""
    hearers = [connect(port, tls, b"hearer%d" % number) for number in range(SUBSCRIBERS)]
    for hearer in hearers:
        hearer.sendall(packet(0x82, b"\0\x01", text(b"load/#"), bytes([qos])))
        receive(hearer, 5)
    speaker = connect(port, tls, b"speaker")
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
            assert heard.count(PAYLOAD) == BATCH, heard
            if qos:
                ids = range(10, size * BATCH, size)
                hearer.sendall(b"".join(b"\x40\x02" + heard[at:at + 2] for at in ids))
    spent = cpu_seconds(pid) - before
    for client in hearers + [speaker]:
        client.sendall(b"\xe0\0")
        client.close()
    return spent / (BATCHES * BATCH * SUBSCRIBERS)


def wait_for(process, port):
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until and process.poll() is None:
        try:
            return socket.create_connection(("127.0.0.1", port)).close()
        except ConnectionRefusedError:
            time.sleep(0.05)
    sys.exit("a broker does not listen")


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def make_certificate():
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", KEY,
                    "-out", CHAIN, "-days", "30", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"],
                   check=True, capture_output=True)


def start(which, is_tls):
    """The process, and where it will listen; ours has a port in clear as well."""
    port, environment = free_port(), dict(os.environ)
    if is_tls:
        environment |= {"TLS_CERTIFICATE": CHAIN, "TLS_KEY": KEY}
    command = [BROKERS[which]]
    if which == "rotor":
        command += ["127.0.0.1:0", f"127.0.0.1:{port}"] if is_tls else [f"127.0.0.1:{port}"]
    elif which == "tokio":
        command.append(f"127.0.0.1:{port}")
    else:
        path = os.path.join(DIRECTORY, "mosquitto.conf")
        with open(path, "w") as config:
            config.write(f"listener {port} 127.0.0.1\nallow_anonymous true\nset_tcp_nodelay true\nlog_type none\n")
            config.write(f"certfile {CHAIN}\nkeyfile {KEY}\n" if is_tls else "")
        os.chmod(KEY, 0o644)    # It gives up being root before it reads this.
        command += ["-c", path]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment), port


def compare(is_tls, qos):
    tls = ssl.create_default_context(cafile=CHAIN) if is_tls else None
    costs = {which: [] for which in BROKERS}
    for _ in range(ROUNDS):
        for which, seen in costs.items():
            process, port = start(which, is_tls)
            try:
                wait_for(process, port)
                seen.append(load(port, tls, process.pid, qos) * 1e6)
            finally:
                process.terminate()
                process.wait()
    medians = {which: statistics.median(seen) for which, seen in costs.items()}
    way = f"{'TLS' if is_tls else 'clear':<5}  QoS {qos}"
    for which, seen in costs.items():
        ratio = f"   rotor / {which}: {medians['rotor'] / medians[which]:.2f}" if which != "rotor" else ""
        print(f"{way}  {which:<10} {medians[which]:6.2f} µs a delivery   ({min(seen):.2f} to {max(seen):.2f}){ratio}", flush=True)


make_certificate()
for is_tls in (False, True):
    for qos in (0, 1):
        compare(is_tls, qos)
