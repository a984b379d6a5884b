#!/usr/bin/env python3
"""hold.py OUT HOST PORT: asks again and again over one connection that is never opened
anew, ten times a second at most. Keeps the result in OUT: {"requests", "error", "longest": the
slowest answer, "answered": when the last ones were, "ended": when the error came}."""

import json
import os
import sys
import time
from http.client import HTTPConnection, HTTPException

out, host, port = sys.argv[1:]
result: dict = {"requests": 0, "error": "", "longest": 0, "answered": []}
connection = HTTPConnection(host, int(port), timeout=120)
connection.connect()
connection.auto_open = 0
while not result["error"]:
    began = time.monotonic()
    try:
        connection.request("GET", "/")
        connection.getresponse().read()
        result["answered"] = [*result["answered"][-99:], time.time()]
    except (OSError, HTTPException) as error:
        result["error"], result["ended"] = repr(error), time.time()
    result["requests"] += 1
    result["longest"] = max(result["longest"], time.monotonic() - began)
    with open(out + ".new", "w") as file:
        json.dump(result, file)
    os.rename(out + ".new", out)
    time.sleep(0.1)
