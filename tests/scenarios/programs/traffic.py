#!/usr/bin/env python3
"""traffic.py OUT PAUSE URL…: asks for each URL in turn, with a pause of so many seconds, over a
new connection each time. Keeps the result in OUT: {"requests", "failed": [[when it began, what]],
"longest": the slowest answer}. It is the forwarder's part to end a request in vain: a person would
call one of two minutes hung."""

import json
import os
import sys
import time
from urllib.request import urlopen

out, pause, urls = sys.argv[1], float(sys.argv[2]), sys.argv[3:]
result: dict = {"requests": 0, "failed": [], "longest": 0}
while True:
    for url in urls:
        began = time.time()
        try:
            with urlopen(url, timeout=120) as answer:
                answer.read()
        except OSError as error:
            result["failed"].append([began, f"{url}: {error}"])
        result["requests"] += 1
        result["last"] = time.time()
        result["longest"] = max(result["longest"], result["last"] - began)
        with open(out + ".new", "w") as file:
            json.dump(result, file)
        os.rename(out + ".new", out)
        time.sleep(pause)
