"""Scenarios: scripts for the NixOS test driver, run over hosts of this machine.

A scenario's first line is a docstring that says what it proves. A line
`# own kernel: ursula` names hosts that share neither clock nor memory with others,
`# bundles: ursula/base.deb` what florctl packs for a host, into its /root/bundles,
`# operator: docs/tutorial/three-machines.md` a page, by its path in the repository, whose
commands an operator types,
`# systemd: ` says why it runs on each version of that, not on the newest alone, and
`# minutes: 4` that it takes long, so that it begins early. A line `# common cluster: base` says
that it begins with all hosts at work in this revision, and leaves them as it found them: such
scenarios run one after another in one cluster, which is brought up once."""

import ast
import re
import shutil
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from .machine import Machine, pause
from .operator import Operator, blocks
from .uml import KERNEL

COMMON = "common.py"
OWN_KERNEL, BUNDLES, OPERATOR, SYSTEMD, MINUTES = "# own kernel: ", "# bundles: ", "# operator: ", "# systemd: ", "# minutes: "
COMMON_CLUSTER = "# common cluster: "


class Scenario:
    def __init__(self, path: Path) -> None:
        self.path, self.name = path, path.stem.replace("_", "-")
        self.text = path.read_text()
        self.proves = (ast.get_docstring(ast.parse(self.text)) or "").split("\n")[0]
        self.own_kernel, self.bundles = self._named(OWN_KERNEL), self._named(BUNDLES)
        self.pages = self._named(OPERATOR)
        self.every_systemd = bool(self._named(SYSTEMD))
        self.minutes = int((self._named(MINUTES) or ["1"])[0])
        self.common_cluster = " ".join(self._named(COMMON_CLUSTER))
        if self.common_cluster and (self.own_kernel or self.bundles or self.pages):
            raise ValueError(f"{path}: a scenario in the common cluster has hosts like those of all others")

    def names(self, host: str) -> bool:
        """Whether the script, or what is before each, has this host; the common cluster has all."""
        common = self.path.with_name(COMMON).read_text()
        return bool(self.common_cluster or re.search(rf"\b{host}\b", self.text + common))

    def _named(self, mark: str) -> list[str]:
        """What lines with this mark name."""
        lines = [line.removeprefix(mark) for line in self.text.splitlines() if line.startswith(mark)]
        return " ".join(lines).split()

    def missing(self) -> str:
        """Why it cannot run here, or nothing."""
        if self.own_kernel and not shutil.which(KERNEL):
            return f"a kernel of its own for {' and '.join(self.own_kernel)} needs {KERNEL}, which Debian has for x86-64 (user-mode-linux)"
        return ""

    def run(self, machines: list[Machine], operator: Operator | None, newest: bool, at_work: str = "") -> None:
        """The script sees what the NixOS test driver shows it; with pages, operator and
        their commands too. at_work is the revision in which a common cluster is at work."""
        symbols = common(self.path.parent, machines, newest=newest, at_work=at_work)
        if operator:
            symbols |= {"operator": operator, "blocks": {h: b for page in self.pages for h, b in blocks(self.path.parents[2] / page).items()}}
        execute(self.path, symbols)


class CommonCluster:
    """A cluster that scenarios have one after another, each of which must leave it as it was
    when it was brought up. After one that does not it must be brought up again, from other hosts."""

    def __init__(self, dir: Path, revision: str) -> None:
        self.dir, self.revision, self.at_work = dir, revision, False

    def bring_up(self, machines: list[Machine]) -> None:
        self.machines, self.functions = machines, common(self.dir, machines)
        self.functions["bring_up"](self.revision)
        self.functions["wait_well"]()
        self.found = self.functions["traces"]()
        self.at_work = True

    def run(self, scenario: Scenario, newest: bool) -> None:
        self.at_work = False
        scenario.run(self.machines, None, newest, self.revision)
        self.functions["as_found"](self.found)
        self.at_work = True


def common(dir: Path, machines: list[Machine], **more: object) -> dict[str, Any]:
    """What every script sees."""
    symbols = {m.name: m for m in machines} | {"machines": machines, "subtest": subtest, "at_once": at_once, "pause": pause} | more
    execute(dir / COMMON, symbols)
    return symbols


def execute(path: Path, symbols: dict[str, Any]) -> None:
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
