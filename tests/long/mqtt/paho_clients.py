"""Paho's clients against a broker: paho_clients.py PORT. Ends with 1 at the first thing that is not as it should
be."""

import queue
import sys

import paho.mqtt.client as mqtt

PORT = int(sys.argv[1])
PATIENCE = 30


class Client:
    def __init__(self, name, clean=True, will=None):
        self.heard, self.subscribed = queue.Queue(), queue.Queue()
        self.connected = queue.Queue()
        self.client = mqtt.Client(mqtt.CallbackAPIVersion.VERSION2, name, clean, protocol=mqtt.MQTTv311)
        self.client.on_connect = lambda _c, _u, flags, code, _p: self.connected.put((flags.session_present, code.value))
        self.client.on_message = lambda _c, _u, m: self.heard.put((m.topic, m.payload.decode(), m.qos, m.retain))
        self.client.on_subscribe = lambda _c, _u, _mid, codes, _p: self.subscribed.put([code.value for code in codes])
        if will:
            self.client.will_set(*will)
        self.client.connect("127.0.0.1", PORT, keepalive=10)
        self.client.loop_start()
        self.is_known, code = self.connected.get(timeout=PATIENCE)
        assert code == 0, code

    def subscribe(self, *filters):
        self.client.subscribe(list(filters))
        return self.subscribed.get(timeout=PATIENCE)

    def publish(self, topic, payload, qos=0, retain=False):
        self.client.publish(topic, payload, qos, retain).wait_for_publish(PATIENCE)

    def hear(self):
        return self.heard.get(timeout=PATIENCE)

    def leave(self):
        self.client.disconnect()
        self.client.loop_stop()

    def vanish(self):
        """Without taking leave."""
        self.client.loop_stop()
        self.client.socket().close()


def same(what, is_so, expected):
    assert is_so == expected, f"{what}: {is_so}, not {expected}"


speaker = Client("speaker")
hearer = Client("hearer")
same("granted", hearer.subscribe(("a/+", 2), ("b/#", 1), ("test/nosubscribe", 0)), [2, 1, 0x80])
for qos in range(3):
    for number in range(200):
        speaker.publish("a/x", f"{qos} {number}", qos)
    for number in range(200):
        same("in order", hearer.hear(), ("a/x", f"{qos} {number}", qos, False))
print("600 messages, of each QoS, once and in order")

speaker.publish("b/kept", "k" * 200_000, 2, True)
same("live", hearer.hear(), ("b/kept", "k" * 200_000, 1, False))
late = Client("late")
late.subscribe(("b/kept", 2))
same("retained", late.hear(), ("b/kept", "k" * 200_000, 2, True))
late.leave()
print("a retained message of 200,000 bytes")

sleeper = Client("sleeper", clean=False)
same("known", sleeper.is_known, False)
sleeper.subscribe(("news", 2))
sleeper.leave()
for number in range(100):
    speaker.publish("news", str(number), 1 + number // 50)
sleeper = Client("sleeper", clean=False)
same("known", sleeper.is_known, True)
for number in range(100):
    same("what waited", sleeper.hear(), ("news", str(number), 1 + number // 50, False))
sleeper.leave()
print("100 messages that waited for their reader")

mortal = Client("mortal", will=("b/will", "gone", 1, False))
mortal.vanish()
same("will", hearer.hear(), ("b/will", "gone", 1, False))
print("a will")
speaker.leave()
hearer.leave()
