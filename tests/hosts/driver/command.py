"""Commands of the machine that the hosts run on."""

import subprocess
from pathlib import Path


class CommandFailed(Exception):
    """A command ended with an error; says which, and its own words."""


def run(*args: str | Path, stdin: str = "", cwd: Path | None = None, env: dict[str, str] | None = None) -> str:
    """Runs a command and returns what it printed."""
    done = subprocess.run([str(a) for a in args], input=stdin, capture_output=True, text=True, cwd=cwd, env=env)
    if done.returncode != 0:
        raise CommandFailed(f"{' '.join(str(a) for a in args)}: exit {done.returncode}: {done.stdout.strip()[-2000:]} {done.stderr.strip()[-2000:]}")
    return done.stdout
