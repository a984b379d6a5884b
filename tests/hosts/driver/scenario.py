"""Scenarios: scripts for the NixOS test driver, run over hosts of this machine.

A scenario's first line is a docstring that says what it proves. A line
`# needs: clock` says what the hosts must be able to do."""

import ast
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from .machine import Machine

COMMON = "common.py"
# What containers cannot do: they share this machine's clock.
MISSING = {"clock": "hosts share this machine's clock; the VM test sets it, tests/sim lets it jump"}


class Scenario:
    def __init__(self, path: Path) -> None:
        self.path, self.name = path, path.stem.replace("_", "-")
        self.text = path.read_text()
        self.proves = (ast.get_docstring(ast.parse(self.text)) or "").split("\n")[0]

    def missing(self) -> str:
        """Why it cannot run here, or nothing."""
        needs = [line.removeprefix("# needs: ") for line in self.text.splitlines() if line.startswith("# needs: ")]
        return "; ".join(MISSING[n] for n in needs)

    def run(self, machines: list[Machine]) -> None:
        """The script sees what the NixOS test driver shows it."""
        def start_all() -> None:
            for m in machines:
                m.start()

        symbols = {m.name: m for m in machines} | {"machines": machines, "start_all": start_all, "subtest": subtest}
        for path in (self.path.with_name(COMMON), self.path):
            exec(compile(path.read_text(), str(path), "exec"), symbols)


def scenarios(dir: Path) -> dict[str, Scenario]:
    found = [Scenario(p) for p in sorted(dir.glob("*.py")) if p.name != COMMON]
    return {s.name: s for s in found}


@contextmanager
def subtest(name: str) -> Iterator[None]:
    began = time.monotonic()
    yield
    print(f"   ok  {name} ({time.monotonic() - began:.1f} s)", flush=True)
