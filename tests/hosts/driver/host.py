"""What is beneath a machine of a scenario: a disk, a process, a way in."""

import contextlib
import os
import shutil
import signal
import subprocess
import time
from abc import ABC, abstractmethod
from pathlib import Path
from typing import NamedTuple

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


class RequestedAssertionFailed(AssertionError):
    """What a scenario asked for does not hold."""


class Done(NamedTuple):
    """How a command on a host ended, and what it printed."""

    code: int
    out: str
    err: str


class Host(ABC):
    """dir holds all of it. Its disk is base, with layers over it that hosts share, upper
    over those, and read-only binds, which are by path on this machine; all are filled
    before the first boot."""

    # The command that watches over the host: its first child is the host's first
    # process, and its death would leave the host behind.
    keeper: str

    def __init__(self, name: str, dir: Path, base: Path) -> None:
        self.name, self.dir, self.layers = name, dir, [base]
        self.binds: dict[Path, str] = {}
        self.upper, self.root, self.work, self.console = dir / "upper", dir / "root", dir / "work", dir / "console"
        for d in (self.upper, self.root):
            d.mkdir(parents=True)
        self.spent = 0.0  # seconds of a processor that boots before this one took, where that is known
        self._processes: list[subprocess.Popen[bytes]] = []  # the keeper of each boot

    @abstractmethod
    def boot(self) -> None: ...

    @abstractmethod
    def shutdown(self) -> None: ...

    @abstractmethod
    def execute(self, command: str, stdin: bytes, timeout: float) -> Done:
        """Runs a shell command as root, once the host is there."""

    @property
    def lower(self) -> str:
        return ":".join(map(str, reversed(self.layers)))

    @property
    def running(self) -> bool:
        """Nobody waits for the keeper of a container here: what it took would count as ours, and it
        is known from its cgroup."""
        return bool(self._processes) and began(self._processes[-1].pid) is not None

    def processor(self) -> float:
        """Seconds of a processor that the host took, all boots together, where that is known
        apart from what this process took."""
        return self.spent

    def signal(self, number: int, timeout: float = 900) -> None:
        """Signals the host's first process and waits until the host is gone."""
        end = time.monotonic() + timeout
        while self.running:
            if time.monotonic() > end:
                raise TimeoutError(f"{self.name}: still there {timeout:.0f} s after signal {number}")
            if pid := first(self._processes[-1].pid, self.keeper):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, number)
                number = signal.SIGKILL if number == signal.SIGKILL else 0
            time.sleep(0.02)

    def _run(self, *args: str | Path, env: dict[str, str] | None = None, fds: tuple[int, ...] = ()) -> None:
        """Starts the keeper, which writes the console."""
        with open(self.console, "ab") as console:
            self._processes.append(subprocess.Popen([str(a) for a in args], stdin=subprocess.DEVNULL, stdout=console, stderr=console,
                                                    env=os.environ | (env or {}), pass_fds=fds, start_new_session=True))
        pid = self._processes[-1].pid
        (self.dir / "keeper").write_text(f"{pid} {began(pid)} {self.keeper}")


def shell(command: str) -> list[str]:
    return ["env", "-i", f"PATH={PATH}", "HOME=/root", "bash", "-c", f"set -euo pipefail; {command}"]


def first(pid: int, keeper: str) -> int | None:
    """The first child of a process, if that is the keeper by now."""
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        if children and Path(f"/proc/{pid}/comm").read_text().strip() == keeper:
            return int(children[0])
    return None


def began(pid: int) -> int | None:
    """When a process began, in ticks since this machine booted, while it lives."""
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        stat = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()  # proc(5), from field 3
        return int(stat[19]) if stat[0] != "Z" else None
    return None


def remove(dir: Path) -> None:
    """Ends a host and deletes it, whoever started it."""
    with contextlib.suppress(FileNotFoundError):
        pid, ticks, keeper = (dir / "keeper").read_text().split()
        while str(began(int(pid))) == ticks:
            if process := first(int(pid), keeper):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(process, signal.SIGKILL)
            time.sleep(0.02)
    shutil.rmtree(dir, ignore_errors=True)
