"""Pipelines of requests, good and bad, each with canaries: names that occur nowhere else, in its path and in a field.

Other canaries are hidden in bodies, trailers and field values, where a proxy that misreads would take them for
requests: no server behind the proxy may ever see those.
"""

import hashlib
import random

# The possible results of a request.
ANSWERED = "answered"  # By the server behind the proxy, and the connection goes on.
EITHER = "either"      # Answered, or refused by the proxy, which then closes; RFC 9112 allows both.
REFUSED = "refused"    # By the proxy, which then closes. The server behind has not seen it.
BROKEN = "broken"      # The same, but its head was good, and the server behind may have seen that.
LOCAL = "local"        # Answered or refused by the proxy itself; it may close.

# The maximum in flight when a connection is closed, so that no reset destroys the last response: less than
# linger_bytes_max.
AFTER_REFUSAL_MAX = 24 << 10
# The maximum length of a body that is answered before it is read.
EARLY_MAX = 16 << 10
BODY_MAX = 200_000

WAIT = object()  # Among what is sent: the request's 100 (Continue), or its answer.


class Request:
    def __init__(self, canary, outcome, method, parts, body=b""):
        self.canary, self.outcome, self.method, self.parts, self.body = canary, outcome, method, parts, body
        self.shape = ""
        self.kind = "plain"
        self.odd = None
        self.target = None
        self.is_last = outcome in (REFUSED, BROKEN)
        self.may_close = outcome != ANSWERED
        self.may_be_seen = outcome in (ANSWERED, BROKEN)  # Also when the proxy has refused it.

    def size(self):
        return sum(len(part) for part in self.parts if part is not WAIT)

    def seen(self):
        return f"{self.method} {len(self.body)} {hashlib.sha256(self.body).hexdigest()[:16]}"


class Generator:
    def __init__(self, seed, number, body_max):
        self.random = random.Random(f"{seed}/{number}")
        self.body_max = body_max
        self.name = f"{seed}x{number}"
        self.count = 0
        self.hidden = set()

    def pipeline(self):
        """Requests in order. After one that ends the connection come a few that must come to nothing."""
        requests, rest = [], None
        length = self.random.choice((1, 2, 3, 5, 8, 12))
        while len(requests) < length:
            request = self.request(rest is not None or len(requests) + 1 < length)
            if rest is not None and request.size() > rest:
                break
            requests.append(request)
            if rest is not None:
                rest -= request.size()
            elif request.outcome != ANSWERED or request.may_close:
                rest = AFTER_REFUSAL_MAX - request.size()
                length = len(requests) + self.random.randrange(4)
        return requests

    def request(self, goes_on):
        chance = self.random.random()
        if chance < 0.72:
            return self.good()
        if chance < 0.80:
            return self.either()
        if chance < 0.83:
            return self.local()
        return self.broken() if chance < 0.90 else self.refused()

    # Parts of requests.

    def canary(self):
        self.count += 1
        return f"c{self.name}x{self.count}e"

    def hide(self):
        canary = self.canary()
        self.hidden.add(canary)
        return canary

    def smuggled(self):
        """A request that is none."""
        canary = self.hide()
        method = self.random.choice(("GET", "POST", "HEAD", "DELETE"))
        end = self.random.choice(("\r\n", "", "Content-Length: 9\r\n\r\n", "X: "))
        return f"{method} /c/{canary} HTTP/1.1\r\nHost: a.example\r\nX-Canary: {canary}\r\n{end}".encode()

    def bytes_of_body(self):
        kind = self.random.randrange(6)
        if kind == 0:
            return b""
        if kind == 1:
            return self.smuggled()
        if kind == 2:
            return b"0\r\n\r\n" + self.smuggled()
        if kind == 3:
            return self.random.choice((b"\r\n", b"\0", b"x")) * self.random.randrange(1, 70)
        size = self.random.choice((1, 100, 1000, 16_383, 16_384, 16_385, 60_000, BODY_MAX))
        return self.random.randbytes(size)

    def chunked(self, body, is_odd=True):
        pieces = []
        while body:
            size = min(len(body), self.random.choice((1, 2, 7, 100, 5000, 70_000)) if len(body) < 3000 else 9_000)
            line = f"{size:x}"
            if is_odd and self.random.random() < 0.4:
                line = self.random.choice((line.upper(), "0" * self.random.randrange(1, 9) + line, line + ";a",
                                           line + ";a=b;c=\"d;e\"", line + " ; a = b", line + ";a=\"0\\\"\""))
            pieces.append(line.encode() + b"\r\n" + body[:size] + b"\r\n")
            body = body[size:]
        pieces.append(self.random.choice((b"0\r\n", b"000\r\n", b"0;last\r\n")) if is_odd else b"0\r\n")
        if is_odd and self.random.random() < 0.3:
            hidden = self.hide()
            pieces.append(self.random.choice((f"X-Canary: {hidden}\r\n", f"X-Trailer: {hidden}\r\nX-Answer: early\r\n",
                                              f"Content-Length: 5\r\nX-Canary: {hidden}\r\n",
                                              f"Transfer-Encoding: chunked\r\nHost: {hidden}\r\n")).encode())
        pieces.append(b"\r\n")
        return b"".join(pieces)

    def name_of(self, name):
        return self.random.choice((name, name.lower(), name.upper(), name.swapcase()))

    def line(self, name, value):
        """A field line in one of the forms that it may have."""
        before, after = self.random.choice((" ", " ", "", "\t", "  \t ")), self.random.choice(("", "", " ", "\t "))
        return f"{self.name_of(name)}:{before}{value}{after}\r\n"

    def target_of(self, canary):
        """What is sent, and what has to arrive."""
        path = f"/c/{canary}"
        query = self.random.choice(("", "", "?", "?a=b&c", f"?u=http://b.example/c/{self.hide()}", "?%0d%0aX:%20y",
            "?'()*,;:@!$"))
        path = self.random.choice((path, path, f"/./c/../c/{canary}", f"//{canary}", f"/%2e%2e/c/{canary}",
                                   f"/{'long' * self.random.choice((10, 300, 1200))}/{canary}"))
        if self.random.random() < 0.1:
            return f"http://other.example:81{path}{query}", path + query
        return path + query, path + query

    # Requests that are answered.

    def good(self):
        random, canary = self.random, self.canary()
        method = random.choice(("GET", "GET", "GET", "HEAD", "HEAD", "POST", "POST", "PUT", "PATCH", "DELETE", "OPTIONS",
                                "PROPFIND", "REPORT", "LOCK"))
        kind = random.choice(("plain", "plain", "plain", "chunked", "empty", "204", "404", "500", "103", "big", "close",
                              "duplex", "early"))
        if method in ("GET", "HEAD") and random.random() < 0.1:
            kind = "304"
        if kind in ("duplex", "early") and method == "HEAD":
            method = "PUT"
        has_body = method not in ("GET", "HEAD", "OPTIONS", "DELETE") or random.random() < 0.25
        sent, target = self.target_of(canary)
        odd = random.choice((None, "", "a  b", "\xe4\xff", "\"a, b\"", f"GET /c/{self.hide()} HTTP/1.1"))
        lines = [self.line("X-Canary", canary), self.line("X-Answer", kind), *self.harmless(method)]
        if odd is not None:
            lines.append(self.line("X-Odd", odd))
        body, framed, waits = b"", b"", False
        if has_body:
            body = self.bytes_of_body()[:EARLY_MAX if kind == "early" else self.body_max]
            if random.random() < 0.5:
                framed = self.chunked(body)
                lines.append(self.line("Transfer-Encoding", random.choice(("chunked", "Chunked", "CHUNKED"))))
            else:
                framed = body
                lines.append(self.line("Content-Length", "0" * random.choice((0, 0, 0, 3)) + str(len(body))))
            if random.random() < 0.2:
                lines.append(self.line("Expect", random.choice(("100-continue", "100-Continue"))))
                waits = random.random() < 0.5
        version, closes = "1.1", False
        chance = random.random()
        if chance < 0.03:
            closes = True
            lines.append(self.line("Connection", random.choice(("close", "Close", "x-gone, close"))))
        elif chance < 0.05 and framed is body and kind != "103":
            version, closes, waits = "1.0", True, False
        random.shuffle(lines)
        host = self.line("Host", random.choice(("a.example", "A.example:80", "127.0.0.1", "[::1]:8080")))
        lines.insert(random.choice((0, len(lines))), host)
        empty = random.choice(("", "", "", "\r\n", "\r\n\r\n"))
        head = f"{empty}{method} {sent} HTTP/{version}\r\n{''.join(lines)}\r\n".encode("latin-1")
        parts = [head, WAIT, framed] if waits and body else [head, framed]
        request = Request(canary, ANSWERED, method, parts, body)
        request.kind, request.target, request.odd = kind, target, odd
        request.shape = f"{kind}, {'a body' if has_body else 'no body'}{', waits' if waits else ''}"
        request.is_last = closes
        # An early response may precede the reading of the body. Then it ends the connection.
        request.may_close = closes or kind == "early"
        return request

    def harmless(self, method):
        """Field lines that change nothing, and some that must not pass."""
        hidden = self.hide()
        lines = [
            self.line("Accept", "*/*"), self.line("X-Empty", ""), self.line("Cookie", f"a={hidden}"),
            self.line("Content_Length", "5"), self.line("Transfer_Encoding", "chunked"), self.line("TE", "trailers"),
            self.line("Connection", "keep-alive"), self.line("Connection", "X-Gone") + self.line("X-Gone", hidden),
            self.line("Keep-Alive", "timeout=1, max=1"), self.line("Upgrade", "h2c"), self.line("X-Forwarded-For", hidden),
            self.line("Proxy-Connection", "close"), self.line("X-Long", "v" * self.random.choice((1, 1000, 7000))),
            self.line("X-Content-Length", "5"), self.line("Content-Lengths", "5"), self.line("Max-Forwards", "0"),
            self.line("Accept-Encoding", "gzip;q=0"), "".join(f"x-{number}: y\r\n" for number in range(60)),
        ]
        if method == "OPTIONS":  # Would be for the proxy itself.
            lines.remove(next(line for line in lines if line.lower().startswith("max-forwards")))
        return self.random.sample(lines, self.random.choice((0, 0, 1, 2, 4)))

    def local(self):
        canary, method = self.canary(), self.random.choice(("TRACE", "CONNECT", "TRACE", "OPTIONS"))
        head, extra = f"{method} /c/{canary} HTTP/1.1\r\n", ""
        if method == "CONNECT":
            head = "CONNECT a.example:443 HTTP/1.1\r\n"
        if method == "OPTIONS":
            extra = "Max-Forwards: 0\r\n"
        head += f"Host: {'a.example:443' if method == 'CONNECT' else 'a.example'}\r\nX-Canary: {canary}\r\n{extra}\r\n"
        request = Request(canary, LOCAL, method, [head.encode()])
        request.shape = f"local {method}"
        return request

    # Requests that a proxy may accept or reject, but must not misinterpret.

    def either(self):
        canary, body = self.canary(), self.smuggled()
        length = f"Content-Length: {len(body)}\r\n"
        line, fields, end, framed = f"POST /c/{canary} HTTP/1.1", length, "\r\n", body
        shapes = {
            "equal lengths": (line, length + length),
            "a list of equal lengths": (line, f"Content-Length: {len(body)}, {len(body)}\r\n"),
            "line feeds": (line.replace("\r", ""), length.replace("\r", "")),
            "an empty coding": (line, "Transfer-Encoding: , chunked\r\n"),
            "an unknown coding": (line, "Transfer-Encoding: gzip, chunked\r\n"),
            "chunks in 1.0": (line.replace("1.1", "1.0"), "Transfer-Encoding: chunked\r\n"),
            "another host in the target": (line.replace(" /", " http://b.example/"), length),
            "an unknown version": (line.replace("1.1", "1.2"), length),
            "many empty lines": ("\r\n" * 5 + line, length),
            "a parameter of chunked": (line, "Transfer-Encoding: chunked;a=b\r\n"),
            "a fold": (line, length + "X-Folded: a\r\n b\r\n"),
            "an expectation": (line, length + "Expect: y\r\n"),
            "two expectations": (line, length + "Expect: 100-continue, y\r\n"),
            "blank before a chunk's end": (line, "Transfer-Encoding: chunked\r\n"),
        }
        shape = self.random.choice(sorted(shapes))
        line, fields = shapes[shape]
        if "Transfer-Encoding" in fields:
            framed = self.chunked(body, is_odd=False)
        if shape == "blank before a chunk's end":
            framed = framed.replace(b"\r\n", b" \r\n", 1)
        end = "\n" if shape == "line feeds" else "\r\n"
        head = end.join((line, "Host: a.example", f"X-Canary: {canary}", "X-Answer: plain", ""))
        request = Request(canary, EITHER, "POST", [(head + fields + end).encode(), framed], body)
        request.target, request.shape = f"/c/{canary}", f"either: {shape}"
        request.may_be_seen = shape == "blank before a chunk's end"
        return request

    # Requests that must be rejected.

    def refused(self):
        random, canary = self.random, self.canary()
        shape, head, rest = random.choice((self.bad_framing, self.bad_framing, self.bad_head, self.oversized))(canary)
        request = Request(canary, REFUSED, head.split(" ", 1)[0], [head.encode("latin-1"), rest])
        request.shape = f"refused: {shape}"
        return request

    def head(self, canary, *lines, first=None):
        return "\r\n".join((first or f"POST /c/{canary} HTTP/1.1", "Host: a.example", f"X-Canary: {canary}", *lines, "", ""))

    def bad_framing(self, canary):
        """Two proxies would see different ends: CL.TE, TE.CL, TE.TE and their kin."""
        smuggled = self.smuggled()
        ended = b"0\r\n\r\n" + smuggled
        chunk = f"{len(smuggled):x}\r\n".encode() + smuggled + b"\r\n0\r\n\r\n"
        length, coding = f"Content-Length: {len(ended)}", "Transfer-Encoding: chunked"
        odd_coding = self.random.choice((
            "Transfer-Encoding : chunked", "Transfer-Encoding:\x0bchunked", "Transfer-Encoding: \x00chunked",
            "Transfer-Encoding: xchunked", "Transfer-Encoding: chunked, identity", "Transfer-Encoding: identity",
            "Transfer-Encoding: chunked\r\nTransfer-Encoding: x", "Transfer-Encoding: chunked, chunked",
            "\tTransfer-Encoding: chunked",
            " Transfer-Encoding: chunked", "X: y\n Transfer-Encoding: chunked", "X: y\rTransfer-Encoding: chunked",
            "Transfer-Encoding:\r\n chunked", "Transfer-Encoding: \"chunked\"", "Transfer-Encoding: chunked\xa0",
            "Transfer-Encoding:",
            "Transfer-Encoding\t: chunked", "Transfer-Encoding: chunk", "Transfer-Encoding: chunked\x00",
            "X: y\nTransfer-Encoding: chunked",
            "Transfer-Encoding: x\r\nTransfer-Encoding: chunked", "Transfer-Encoding:\xff chunked",
            "\x0bTransfer-Encoding: chunked",
        ))
        odd_length = self.random.choice((
            "+{}", "-{}", "{0} {0}", "0x{:x}", "{},0", "{};", "{}\r\nContent-Length: 0", "{}.0", "", "1e2", "{}\x0b",
            "\xb9{}",
            "99999999999999999999{}", "18446744073709551616", "{}\r\nContent-Length: {}0", "\"{}\"", "{},", ",{}", "_{}",
            "{}_0",
        )).replace("{0}", str(len(ended))).replace("{:x}", f"{len(ended):x}").replace("{}", str(len(ended)))
        shapes = {
            "CL.TE": ((length, coding), ended),
            "TE.CL": ((coding, "Content-Length: 4"), chunk),
            "CL.TE, odd": ((length, odd_coding), ended),
            "TE.CL, odd": ((odd_coding, f"Content-Length: {len(chunk)}"), chunk),
            "TE.TE": ((coding, odd_coding, length), ended),
            "an odd length": ((f"Content-Length: {odd_length}",), ended),
            "an odd name": ((f"Content-Length : {len(ended)}",), ended),
            "two lengths": ((length, f"Content-Length: {len(ended) - len(smuggled)}"), ended),
            "lengths in a list": ((f"Content-Length: {len(ended)}, 5",), ended),
            "a length taken away": ((length, "Connection: Content-Length"), ended),
            "a coding taken away": ((coding, "Connection: Transfer-Encoding"), chunk),
        }
        shape = self.random.choice(sorted(shapes))
        lines, rest = shapes[shape]
        odd = repr([line for line in lines if line in (odd_coding, f"Content-Length: {odd_length}")])
        return f"{shape} {odd}", self.head(canary, *lines), rest

    def bad_head(self, canary):
        hidden, rest = self.hide(), self.smuggled()
        line = f"GET /c/{canary} HTTP/1.1"
        firsts = {
            "two blanks": line.replace(" /", "  /"), "a tab": line.replace(" /", "\t/"), "no version": line[:-9],
            "HTTP/2.0": line.replace("1.1", "2.0"), "http/1.1": line.replace("HTTP", "http"), "HTTP/1.10": line + "0",
            "HTTP/0.9": line.replace("1.1", "0.9"), "a blank first": " " + line, "a nul": line.replace("/c", "/\0c"),
            "latin-1": line.replace("/c", "/\xe9"), "a fragment": line.replace(" HTTP", "#a HTTP"),
            "a blank last": line + " ",
            "TLS": "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", "a blank in the target": line.replace("/c/", "/c /"),
            "no target": "GET HTTP/1.1", "a method that is none": line.replace("GET", "GE(T"),
            "a bare CR": line.replace(" HTTP", "\rHTTP"),
            "a target that is none": line.replace("/c/", "c/"), "the preface of HTTP/2": "PRI * HTTP/2.0",
        }
        lines = {
            "no colon": "X-Field", "no name": ": x", "a blank in a name": "X Field: x",
            "a blank after a name": "X-Field : x",
            "a nul in a value": "X: a\0b", "a bare CR": f"X: a\rX-Canary: {hidden}", "a second host": "Host: b.example",
            "a host that is none": "", "a fold of the canary": f"X: a\r\n\r X-Canary: {hidden}",
            "a name that is none": "X(: y",
            "a host taken away": "Connection: Host", "a blank first": f" X-Canary: {hidden}",
            "a name of latin-1": "X\xe9: y",
            "a cookie taken away": "Connection: close, Cookie", "where from taken away": "Connection: X-Forwarded-For",
        }
        if self.random.random() < 0.4:
            shape = self.random.choice(sorted(firsts))
            return shape, self.head(canary, first=firsts[shape]), rest
        shape = self.random.choice(sorted(lines))
        if shape == "a blank first":
            return shape, f"{line}\r\n X-Canary: {hidden}\r\nHost: a.example\r\n\r\n", rest
        if shape == "a host that is none":
            host = self.random.choice(("", "Host: a b\r\n", "Host: a/b\r\n", "Host: a@b\r\n", "Host: a:b\r\n",
                "Host: [::1\r\n", "Host: a,b c\r\n"))
            return f"{shape} {host!r}", f"{line}\r\n{host}X-Canary: {canary}\r\n\r\n", rest
        return shape, self.head(canary, lines[shape], first=line), rest

    def oversized(self, canary):
        line = f"GET /c/{canary} HTTP/1.1"
        shapes = {
            "a target": self.head(canary, first=line.replace("/c/", f"/{'t' * 8200}/")),
            "a field": self.head(canary, "X-Long: " + "v" * 8200),
            "fields": self.head(canary, *(f"x-{number}: y" for number in range(101))),
            "a head": self.head(canary, *("X-Long: " + "v" * 8000 for _ in range(2)), "X-Long: " + "v" * 500),
        }
        shape = self.random.choice(sorted(shapes))
        return f"oversized {shape}", shapes[shape], self.smuggled()

    def broken(self):
        """A good head, and a body that is none."""
        canary, smuggled = self.canary(), self.smuggled()
        size = f"{len(smuggled):x}"
        whole = smuggled + b"\r\n0\r\n\r\n"
        shapes = {
            "no size": b"\r\n" + whole, "no number": b"xyz\r\n" + whole, "a sign": f"+{size}\r\n".encode() + whole,
            "0x": f"0x{size}\r\n".encode() + whole, "a size of 17 digits": f"f{'0' * 16}\r\n".encode() + whole,
            "a line feed after the size": f"{size}\n".encode() + whole, "a blank first": f" {size}\r\n".encode() + whole,
            "no end of a chunk": f"{size}\r\n".encode() + smuggled + b"0\r\n\r\n",
            "another end of a chunk": f"{size}\r\n".encode() + smuggled + b"\n\n0\r\n\r\n",
            "a line feed in an extension": f"{size};a\n\r\n".encode() + whole,
            "a CR in an extension": f"{size};a\rb\r\n".encode() + whole,
            "a quote that is not closed": f"{size};a=\"\r\n".encode() + whole,
            "a trailer that is none": b"0\r\nX-Trailer\r\n\r\n" + smuggled,
            "a folded trailer": b"0\r\nX: y\r\n z\r\n\r\n" + smuggled,
            "line feeds after trailers": b"0\r\nX: y\n\n" + smuggled,
            "a long extension": f"{size};{'x' * 300}\r\n".encode() + whole,
            "a long trailer": b"0\r\nX: " + b"t" * 5000 + b"\r\n\r\n" + smuggled,
            "an underscore": f"{size[0]}_{size[1:]}\r\n".encode() + whole,
            "extensions": (b"1;" + b"x" * 84 + b"\r\nx\r\n") * 60 + b"0\r\n\r\n",
        }
        shape = self.random.choice(sorted(shapes))
        head = self.head(canary, "X-Answer: plain", "Transfer-Encoding: chunked")
        request = Request(canary, BROKEN, "POST", [head.encode(), shapes[shape]])
        request.shape = f"broken: {shape}"
        return request
