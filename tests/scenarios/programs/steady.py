#!/usr/bin/env python3
"""steady.py OUT HOST PORT: asks a name server twenty times a second from one socket.
Keeps the result in OUT: {"asked", "lost", "longest": the most lost in a row}."""

import json
import os
import socket
import struct
import sys
import time

out, host, port = sys.argv[1:]
result = {"asked": 0, "lost": 0, "longest": 0}
row = 0
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.connect((host, int(port)))
s.settimeout(0.5)
while True:
    id = result["asked"] % 65536
    answered = False
    try:
        s.send(struct.pack("!HHHHHH", id, 0x0100, 1, 0, 0, 0) + b"\x06steady\x00" + struct.pack("!HH", 1, 1))
        while not answered:
            answered = s.recv(65535)[:2] == struct.pack("!H", id)
    except OSError:
        pass
    row = 0 if answered else row + 1
    result = {"asked": result["asked"] + 1, "lost": result["lost"] + (not answered), "longest": max(result["longest"], row)}
    with open(out + ".new", "w") as file:
        json.dump(result, file)
    os.rename(out + ".new", out)
    time.sleep(0.05)
