#!/usr/bin/env python3
"""A server of Python's http.server that responds in all kinds of ways; its argument is the length of /big.

Prints its address, as the other servers beside this file do.
"""

import http.server
import sys

BIG = int(sys.argv[1])
PATTERN = bytes(range(251))


def octets(count):
    return (PATTERN * (count // 251 + 1))[:count]


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        match self.path:
            case "/hello":
                self.answer(b"hello")
            case "/204":
                self.send_response(204)
                self.end_headers()
            case "/304":
                self.send_response(304)
                self.send_header("ETag", self.headers["If-None-Match"])
                self.end_headers()
            case "/big":
                self.answer(octets(BIG))
            case "/chunked":
                self.send_response(200)
                self.send_header("Transfer-Encoding", "chunked")
                self.end_headers()
                for piece in (b"one", b"two", b"three"):
                    self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
                self.wfile.write(b"0\r\n\r\n")
            case "/103":
                self.send_response_only(103)
                self.send_header("Link", "</a.css>; rel=preload")
                self.end_headers()
                self.answer(b"hello")
            case "/until-close":
                self.send_response(200)
                self.end_headers()
                self.wfile.write(b"no length")
                self.close_connection = True
            case "/closes":
                self.answer(b"hello")
                self.close_connection = True
            case _:
                self.send_error(404)

    def do_HEAD(self):
        self.send_response(200)
        self.send_header("Content-Length", "5")
        self.end_headers()

    def do_POST(self):
        self.answer(self.body())

    def do_PUT(self):
        self.answer(b"%d" % len(self.body()))

    def body(self):
        if self.headers["Transfer-Encoding"] != "chunked":
            return self.rfile.read(int(self.headers["Content-Length"]))
        body = bytearray()
        while size := int(self.rfile.readline(), 16):
            body += self.rfile.read(size)
            assert self.rfile.readline() == b"\r\n"
        assert self.rfile.readline() == b"\r\n"
        return bytes(body)

    def answer(self, body):
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
print("127.0.0.1:%d" % server.server_address[1], flush=True)
server.serve_forever()
