#!/usr/bin/env python3
"""whole.py: what a host finds on its disk before activation touches it: is every
generation in force whole, and what was left half done beside it? One line of JSON:
{"broken": [what], "unfinished": generations, "unanswered": requests, "missing": [need]}."""

import base64
import hashlib
import json
import os
import subprocess
from pathlib import Path

STATE = Path("/var/lib/florete")
found: dict = {"broken": [], "unfinished": 0, "unanswered": 0, "missing": []}


def broken(place: Path, what: object) -> None:
    found["broken"].append(f"{place}: {what}")


def in_force(dir: Path) -> Path | None:
    """The generation in force; counts those that a writer did not finish."""
    now = os.readlink(dir / "current") if (dir / "current").is_symlink() else "gen-0"
    number = int(now.removeprefix("gen-"))
    found["unfinished"] += sum(int(g.name[4:]) > number for g in dir.glob("gen-*"))
    found["unfinished"] += (dir / "current.new").is_symlink()
    return dir / now if number else None


def openssl(*args: object) -> str:
    done = subprocess.run(["openssl", *map(str, args)], capture_output=True, text=True)
    return done.stdout if done.returncode == 0 else done.stderr


def certificate(gen: Path) -> None:
    if openssl("x509", "-noout", "-pubkey", "-in", gen / "svid.pem") != openssl("pkey", "-pubout", "-in", gen / "key.pem"):
        broken(gen, "the key is not the certificate's")
    if openssl("x509", "-noout", "-in", gen / "bundle.pem"):
        broken(gen, "no root in the bundle")


def need(n: dict) -> None:
    dir = STATE / "needs" / n["id"]
    found["unanswered"] += (dir / "pending.json").exists()
    for file in ("state.json", "pending.json"):
        if (dir / file).exists():
            try:
                json.loads((dir / file).read_bytes())
            except ValueError as error:
                broken(dir / file, error)
    gen = in_force(dir) if dir.exists() else None
    if not gen:
        if n["deliver"]["files"]:
            found["missing"].append(n["id"])
        return
    if {f.name for f in gen.iterdir()} != set(n["deliver"]["files"]):
        broken(gen, sorted(f.name for f in gen.iterdir()))
    for name, file in n["deliver"]["files"].items():
        if (gen / name).stat().st_size == 0 or (gen / name).stat().st_mode & 0o7777 != int(file["mode"], 8):
            broken(gen / name, oct((gen / name).stat().st_mode))
    if n["kind"] == "cert":
        certificate(gen)


def documents() -> None:
    gen = in_force(STATE / "documents")
    for envelope in gen.glob("*.envelope.json") if gen else []:
        body = gen / envelope.name.replace(".envelope", "")
        digest = "sha256-" + base64.b64encode(hashlib.sha256(body.read_bytes()).digest()).decode()
        if json.loads(envelope.read_bytes())["digest"] != digest:
            broken(body, "not what its envelope names")


try:
    if (STATE / "documents").exists():
        documents()
    if (STATE / "activation.json").exists():
        json.loads((STATE / "activation.json").read_bytes())
    for n in json.loads(Path("/etc/florete/documents/manifest.json").read_bytes())["needs"]:
        need(n)
except (OSError, ValueError) as error:
    broken(STATE, error)
print(json.dumps(found))
