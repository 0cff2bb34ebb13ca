#!/usr/bin/env python3
"""Relays connections to a port of this machine. What clients send goes on byte by byte: each byte is a segment of its
own.

Prints the port on which it listens.
"""
import asyncio
import socket
import sys

UPSTREAM = int(sys.argv[1])


async def pump(reader, writer, chops):
    try:
        while data := await reader.read(65536):
            if chops:
                for byte in data:
                    writer.write(bytes([byte]))
                    # Lets the server read this byte before the next one.
                    await writer.drain()
                    await asyncio.sleep(0)
            else:
                writer.write(data)
                await writer.drain()
        writer.write_eof()
    except (ConnectionError, OSError):
        pass


async def relay(reader, writer):
    up_reader, up_writer = await asyncio.open_connection("127.0.0.1", UPSTREAM)
    up_writer.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    await asyncio.gather(pump(reader, up_writer, True), pump(up_reader, writer, False))
    for end in (writer, up_writer):
        end.close()


async def main():
    server = await asyncio.start_server(relay, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


asyncio.run(main())
