#!/usr/bin/env python3
"""board.py PORT: a service without a sign-in, which answers with the person in the headers."""

import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Board(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        people = self.headers.get_all("X-Forwarded-Email") or []
        body = f"{len(people)} {' '.join(people)} {self.headers.get('X-Forwarded-Groups')}\n".encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        pass


ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Board).serve_forever()
