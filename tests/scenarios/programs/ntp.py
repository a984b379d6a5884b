#!/usr/bin/env python3
"""ntp.py: tells the time by NTP (RFC 5905), on port 123 of all addresses."""

import socket
import struct
import time

SINCE_1900 = 2208988800  # seconds from there to Unix time


def timestamp() -> bytes:
    now = time.time() + SINCE_1900
    return struct.pack("!II", int(now), int(now % 1 * 2**32))


with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
    server.bind(("", 123))
    while True:
        request, client = server.recvfrom(512)
        if len(request) >= 48:
            came = timestamp()
            # No warning, version 4, a server's; stratum 1, poll, precision; root delay and dispersion; reference.
            header = struct.pack("!BBBbII4s", 0b00_100_100, 1, 6, -20, 0, 0, b"LOCL")
            server.sendto(header + came + request[40:48] + came + timestamp(), client)
