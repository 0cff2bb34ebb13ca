"""A client that sends a pipeline in pieces and reads its responses, strictly."""

import asyncio
import random

from pipelining.generator import WAIT

FIELDS_BYTES_MAX = 1 << 17


class Violation(Exception):
    """What was received is no HTTP, or not what was asked for."""


class Answer:
    def __init__(self, status, fields, is_1_0):
        self.status, self.fields, self.is_1_0 = status, fields, is_1_0
        self.body = b""

    def get(self, name):
        values = [value for key, value in self.fields if key == name]
        if len(values) > 1:
            raise Violation(f"{name} comes {len(values)} times")
        return values[0] if values else None

    def closes(self):
        return "close" in (self.get("connection") or "").lower()


class Exchange:
    """One pipeline on one connection."""

    def __init__(self, requests, seed):
        self.requests, self.random = requests, random.Random(seed)
        self.interims = [[] for _ in requests]
        self.answers = []
        self.heard = asyncio.Event()  # Of anything.
        self.is_over = self.is_reset = False

    async def run(self, address):
        reader, writer = await asyncio.open_connection(*address, limit=FIELDS_BYTES_MAX)
        sending = asyncio.create_task(self.send(writer))
        try:
            await self.read(reader)
        except (ConnectionError, asyncio.IncompleteReadError) as error:
            self.is_reset = True
            if isinstance(error, asyncio.IncompleteReadError) and error.partial:
                raise Violation(f"it ends with {error.partial[:100]!r}") from error
        finally:
            self.is_over = True
            self.heard.set()
            await sending
            writer.close()

    async def send(self, writer):
        pending = bytearray()
        try:
            for number, request in enumerate(self.requests):
                for part in request.parts:
                    if part is WAIT:
                        await self.flush(writer, pending)
                        await self.hear(lambda number=number: self.interims[number] or len(self.answers) > number)
                    else:
                        pending += part
                if self.random.random() < 0.3:
                    await self.flush(writer, pending)
            await self.flush(writer, pending)
            # EOF after the requests, so that the connection ends after the last response.
            if writer.can_write_eof():
                writer.write_eof()
        except (OSError, RuntimeError):
            pass  # What was answered before decides.

    async def flush(self, writer, pending):
        """In one piece, in a few, or octet by octet around a place where it may matter."""
        cuts = [self.random.randrange(len(pending) + 1) for _ in range(self.random.choice((0, 0, 1, 3)))]
        if pending and self.random.random() < 0.1:
            start = self.random.randrange(len(pending))
            cuts += range(start, min(start + 40, len(pending)))
        for start, end in zip([0, *sorted(cuts)], [*sorted(cuts), len(pending)]):
            if start < end:
                writer.write(bytes(pending[start:end]))
                await writer.drain()
                await asyncio.sleep(0)
        pending.clear()

    async def hear(self, is_there):
        while not is_there() and not self.is_over:
            self.heard.clear()
            await self.heard.wait()

    async def read(self, reader):
        while True:
            number = len(self.answers)
            if number == len(self.requests):
                if rest := await reader.read(1):
                    raise Violation(f"{rest!r} after the last answer")
                return
            answer = await read_head(reader)
            if answer is None:
                return
            if 100 <= answer.status < 200:
                self.interims[number].append(answer)
            else:
                await read_body(reader, answer, self.requests[number].method)
                self.answers.append(answer)
            self.heard.set()


async def read_head(reader):
    """The head of an answer, or none at the end."""
    try:
        line = await reader.readuntil(b"\r\n")
    except asyncio.IncompleteReadError as error:
        if is_refused_preface(error.partial):
            return Answer(400, [("connection", "close"), ("content-length", "0")], False)
        if error.partial:
            raise
        return None
    parts = line.decode("latin-1").split(" ", 2)
    if len(parts) != 3 or parts[0] not in ("HTTP/1.1", "HTTP/1.0") or len(parts[1]) != 3 or not parts[1].isdigit():
        raise Violation(f"a status line {line[:100]!r}")
    fields = await read_fields(reader)
    return Answer(int(parts[1]), fields, parts[0] == "HTTP/1.0")


def is_refused_preface(octets):
    """Whether this is what one is told who begins like HTTP/2 and goes on otherwise (RFC 9113 §3.4): settings, and
    GOAWAY with PROTOCOL_ERROR; and then the end."""
    kinds = []
    while len(octets) >= 9 + int.from_bytes(octets[:3], "big"):
        length = int.from_bytes(octets[:3], "big")
        kinds.append(octets[3])
        last, octets = octets[9:9 + length], octets[9 + length:]
    return not octets and kinds[:1] == [4] and kinds[-1] == 7 and last[4:8] == b"\0\0\0\1"


async def read_fields(reader):
    fields = []
    while (line := await reader.readuntil(b"\r\n")) != b"\r\n":
        name, colon, value = line[:-2].decode("latin-1").partition(":")
        if not colon or not name or name != name.strip() or "\r" in value or "\n" in value:
            raise Violation(f"a field line {line[:100]!r}")
        fields.append((name.lower(), value.strip(" \t")))
    return fields


async def read_body(reader, answer, method):
    length, coding = answer.get("content-length"), answer.get("transfer-encoding")
    if length is not None and coding is not None or coding not in (None, "chunked"):
        raise Violation(f"framed by {length} and {coding}")
    if method == "HEAD" or answer.status in (204, 304):
        return
    if length is not None:
        answer.body = await reader.readexactly(int(length))
    elif coding:
        pieces = []
        while size := int((await reader.readuntil(b"\r\n"))[:-2], 16):
            pieces.append(await reader.readexactly(size))
            if await reader.readexactly(2) != b"\r\n":
                raise Violation("a chunk without its end")
        await read_fields(reader)
        answer.body = b"".join(pieces)
    else:
        if not answer.closes():
            raise Violation("a body without an end")
        answer.body = await reader.read()
