#!/usr/bin/env python3
"""callers.py PORT SOCKET: services that answer with whom they believe to call them.

On PORT what the headers of a request say, and what the forwarder answers about the
connection; on the Unix socket what the PROXY header before the bytes says."""

import contextlib
import http.client
import json
import os
import socket
import struct
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

WHOIS = "/run/florete/agent/whois.sock"


class Local(http.client.HTTPConnection):
    """HTTP over a Unix socket."""

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(WHOIS)


def whois(address: tuple[str, int]) -> dict:
    conn = Local("agent")
    conn.request("GET", "/whois?from={}:{}".format(*address))
    return json.load(conn.getresponse())


class Callers(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        seen = {"headers": self.headers.get_all("X-Forwarded-Client-Cert"), "address": self.headers.get_all("X-Forwarded-For"), "whois": whois(self.client_address)}
        body = (json.dumps(seen) + "\n").encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        pass


def exactly(conn: socket.socket, n: int) -> bytes:
    data = b""
    while len(data) < n:
        more = conn.recv(n - len(data))
        if not more:
            raise EOFError
        data += more
    return data


def caller(conn: socket.socket) -> str:
    """The SPIFFE ID in a PROXY protocol header, version 2, over IPv4."""
    head = exactly(conn, 16)
    if head[:14] != b"\r\n\r\n\0\r\nQUIT\n\x21\x11":
        return "no header"
    values = exactly(conn, struct.unpack("!H", head[14:])[0])[12:]
    while values:
        kind, size = struct.unpack("!BH", values[:3])
        if kind == 0xD0:
            return values[3 : 3 + size].decode()
        values = values[3 + size :]
    return "no ID"


def serve(listener: socket.socket) -> None:
    while True:
        conn, _ = listener.accept()
        with conn, contextlib.suppress(EOFError, OSError):
            conn.sendall((caller(conn) + "\n").encode())
            conn.shutdown(socket.SHUT_WR)
            while conn.recv(4096):  # what is unread would reset the answer
                pass


listener = socket.socket(socket.AF_UNIX)
listener.bind(sys.argv[2])
os.chmod(sys.argv[2], 0o666)  # as nginx does: who may enter its directory decides
listener.listen()
threading.Thread(target=serve, args=[listener], daemon=True).start()
ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Callers).serve_forever()
