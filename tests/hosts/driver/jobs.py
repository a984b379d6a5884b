"""Runs several pieces of work at once, each in a process of its own."""

import os
import signal
import sys
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path

# For each processor: hosts of a scenario wait for each other more than half of the time, but where
# more run at once they wait for processors, look again meanwhile, and all end later. Five hosts have
# at most so much memory, in KiB.
AT_ONCE, MEMORY = 2, 700 << 10


def at_once() -> int:
    """How many scenarios this machine runs at once."""
    return max(1, min(AT_ONCE * len(os.sched_getaffinity(0)) + 1, available() // MEMORY))


def available() -> int:
    """The memory that is available, in KiB."""
    line = next(line for line in Path("/proc/meminfo").read_text().splitlines() if line.startswith("MemAvailable:"))
    return int(line.split()[1])


class Jobs:
    """At most most at once. What a job prints appears when it ends, or at once where
    there is only one. dir is for that."""

    def __init__(self, dir: Path, most: int) -> None:
        self.dir, self.most = dir, most
        self.running: dict[int, tuple[list[str], int]] = {}
        self.verdicts: dict[str, bool] = {}

    def make_room(self) -> None:
        """Waits until another one may start, for which there is memory, too."""
        while len(self.running) >= self.most:
            self._wait()
        while self.running and available() < MEMORY:
            self._wait()

    def start(self, names: list[str], work: Callable[[int], Iterator[str]]) -> None:
        """Runs work, once there is room, with the number of the room: two that run at
        once have different ones. It yields those of the names that pass."""
        self.make_room()
        number = min(set(range(self.most)) - {n for _, n in self.running.values()})
        sys.stdout.flush()
        pid = os.fork()
        if pid == 0:
            self._run(number, work)
        self.running[pid] = (names, number)

    def finish(self) -> dict[str, bool]:
        """Waits for all; by name, whether it passed."""
        while self.running:
            self._wait()
        return self.verdicts

    def stop(self) -> None:
        """Ends what runs, and waits for it."""
        for pid in self.running:
            os.kill(pid, signal.SIGTERM)
        for pid in self.running:
            os.waitpid(pid, 0)
        self.running.clear()

    def _run(self, number: int, work: Callable[[int], Iterator[str]]) -> None:
        self.running.clear()  # another process's
        code = 1
        try:
            if self.most > 1:
                out = os.open(self._out(number), os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
                os.dup2(out, 1)
                os.dup2(out, 2)
            with open(self._passed(number), "w") as passed:
                for name in work(number):
                    print(name, file=passed, flush=True)
            code = 0
        except Exception:
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)

    def _wait(self) -> None:
        pid, status = os.wait()
        names, number = self.running.pop(pid)
        if self.most > 1:
            print(self._out(number).read_text(errors="replace"), end="", flush=True)
        passed = self._passed(number).read_text().splitlines() if status == 0 else []
        self.verdicts |= {name: name in passed for name in names}

    def _out(self, number: int) -> Path:
        return self.dir / f"out-{number}"

    def _passed(self, number: int) -> Path:
        return self.dir / f"passed-{number}"
