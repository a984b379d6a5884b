#!/usr/bin/env python3
"""resolver.py PORT ADDRESS: a name server (RFC 1035) that answers every question for
an IPv4 address with the same one, and tells others that there is none."""

import socket
import struct
import sys

TYPE_A = 1
server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
server.bind(("127.0.0.1", int(sys.argv[1])))
while True:
    query, client = server.recvfrom(65535)
    if len(query) < 17:
        continue
    end = query.index(0, 12) + 5  # of the question: name, type, class
    answer = b""
    if struct.unpack("!H", query[end - 4:end - 2])[0] == TYPE_A:
        answer = struct.pack("!HHHIH4s", 0xC00C, TYPE_A, 1, 60, 4, socket.inet_aton(sys.argv[2]))
    # Its ID; an answer with recursion; one question, its answers.
    header = query[:2] + struct.pack("!HHHHH", 0x8180, 1, bool(answer), 0, 0)
    server.sendto(header + query[12:end] + answer, client)
