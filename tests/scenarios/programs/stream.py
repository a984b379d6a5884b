#!/usr/bin/env python3
"""stream.py SOCKET METHOD [--first] [HEADER…]: opens a stream of the Workload API and prints what of it
is text, as it comes. Ends where the stream is refused, and with --first after the first SPIFFE ID.

gRPC is HTTP/2: this sends the headers and an empty message."""

import subprocess
import sys

socket, method, *headers = sys.argv[1:]
first = "--first" in headers
options = [option for header in headers if header != "--first" for option in ("--header", header)]
curl = subprocess.Popen(
    ["curl", "--silent", "--no-buffer", "--http2-prior-knowledge", "--unix-socket", socket, *options, "--data-binary", "@-", "--dump-header", "-", f"http://localhost/SpiffeWorkloadAPI/{method}"],
    stdin=subprocess.PIPE,
    stdout=subprocess.PIPE,
)
assert curl.stdin and curl.stdout
curl.stdin.write(bytes(5))
curl.stdin.close()
seen = ""
while more := curl.stdout.read1():
    text = "".join(chr(c) for c in more if c == ord("\n") or 32 <= c < 127)
    print(text, end="", flush=True)
    seen += text
    if first and "spiffe://" in seen:
        curl.kill()
