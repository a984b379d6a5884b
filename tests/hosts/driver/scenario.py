"""Scenarios: scripts for the NixOS test driver, run over hosts of this machine.

A scenario's first line is a docstring that says what it proves. A line
`# own kernel: ursula` names hosts that share neither clock nor memory with others,
`# bundles: ursula/base.deb` what florctl packs for a host, into its /root/bundles,
`# operator: docs/tutorial/three-machines.md` a page, by its path in the repository, whose
commands an operator types,
`# systemd: ` says why it runs on each version of that, not on the newest alone, and
`# minutes: 4` that it takes long, so that it begins early."""

import ast
import re
import shutil
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from .machine import Machine, pause
from .operator import Operator, blocks
from .uml import KERNEL

COMMON = "common.py"
OWN_KERNEL, BUNDLES, OPERATOR, SYSTEMD, MINUTES = "# own kernel: ", "# bundles: ", "# operator: ", "# systemd: ", "# minutes: "


class Scenario:
    def __init__(self, path: Path) -> None:
        self.path, self.name = path, path.stem.replace("_", "-")
        self.text = path.read_text()
        self.proves = (ast.get_docstring(ast.parse(self.text)) or "").split("\n")[0]
        self.own_kernel, self.bundles = self._named(OWN_KERNEL), self._named(BUNDLES)
        self.pages = self._named(OPERATOR)
        self.every_systemd = bool(self._named(SYSTEMD))
        self.minutes = int((self._named(MINUTES) or ["1"])[0])

    def names(self, host: str) -> bool:
        """Whether the script, or what is before each, has this host."""
        common = self.path.with_name(COMMON).read_text()
        return bool(re.search(rf"\b{host}\b", self.text + common))

    def _named(self, mark: str) -> list[str]:
        """What lines with this mark name."""
        lines = [line.removeprefix(mark) for line in self.text.splitlines() if line.startswith(mark)]
        return " ".join(lines).split()

    def missing(self) -> str:
        """Why it cannot run here, or nothing."""
        if self.own_kernel and not shutil.which(KERNEL):
            return f"a kernel of its own for {' and '.join(self.own_kernel)} needs {KERNEL}, which Debian has for x86-64 (user-mode-linux)"
        return ""

    def run(self, machines: list[Machine], operator: Operator | None, newest: bool) -> None:
        """The script sees what the NixOS test driver shows it; with pages, operator and
        their commands too."""
        symbols = {m.name: m for m in machines} | {"machines": machines, "subtest": subtest, "at_once": at_once, "pause": pause, "newest": newest}
        if operator:
            symbols |= {"operator": operator, "blocks": {h: b for page in self.pages for h, b in blocks(self.path.parents[2] / page).items()}}
        for path in (self.path.with_name(COMMON), self.path):
            exec(compile(path.read_text(), str(path), "exec"), symbols)


def scenarios(dir: Path) -> dict[str, Scenario]:
    found = [Scenario(p) for p in sorted(dir.glob("*.py")) if p.name != COMMON]
    return {s.name: s for s in found}


def at_once(do: Callable[[Machine], object], hosts: list[Machine]) -> list[object]:
    with ThreadPoolExecutor() as pool:
        return list(pool.map(do, hosts))


@contextmanager
def subtest(name: str) -> Iterator[None]:
    began = time.monotonic()
    yield
    print(f"   ok  {name} ({time.monotonic() - began:.1f} s)", flush=True)
