"""Runs scenarios and tells what each proved."""

import argparse
import os
import shutil
import signal
import sys
import time
import traceback
from pathlib import Path

from . import container, network
from .cluster import Cluster, HOSTS
from .container import Container
from .debian import base
from .machine import Machine
from .network import Network
from .scenario import Scenario, scenarios


class Run:
    """The hosts of one scenario at a time, and everything they leave on this
    machine; names hold this process's id."""

    def __init__(self, cache: Path, cluster: Cluster) -> None:
        self.dir, self.prefix = cache / f"run-{os.getpid()}", f"fl{os.getpid()}"
        self.base, self.cluster = base(cache), cluster

    def machines(self) -> list[Machine]:
        net = Network(self.prefix)
        made = []
        for number, name in enumerate(HOSTS, 1):
            c = Container(name, self.dir / name, self.base, net.attach(name, number))
            self.cluster.furnish(c)
            made.append(Machine(c, net, number))
        return made

    def close(self) -> None:
        remove(self.dir, self.prefix)


def remove(dir: Path, prefix: str) -> None:
    for host in dir.glob("*/nspawn.pid"):
        container.remove(host.parent, f"{prefix}-{host.parent.name}")
    network.remove(prefix)
    shutil.rmtree(dir, ignore_errors=True)


def sweep(cache: Path) -> None:
    """Removes what a run left behind that was killed."""
    for dir in cache.glob("run-*"):
        pid = dir.name.removeprefix("run-")
        if not Path(f"/proc/{pid}").exists():
            remove(dir, f"fl{pid}")


def attempt(scenario: Scenario, run: Run) -> bool:
    print(f"\n== {scenario.name}: {scenario.proves}", flush=True)
    began = time.monotonic()
    machines = []
    try:
        machines = run.machines()
        scenario.run(machines)
    except Exception:
        traceback.print_exc()
        for m in machines:
            if m.container.running:
                print(f"-- {m.name}\n{m.execute('journalctl --no-pager --lines=25 --output=short-precise; systemctl --failed --no-legend')[1]}")
        return False
    finally:
        print(f"   {time.monotonic() - began:.0f} s", flush=True)
        run.close()
    return True


def main() -> int:
    here = Path(__file__).resolve().parent.parent
    all = scenarios(here.parent / "scenarios")
    p = argparse.ArgumentParser(prog="tests/hosts/run", description="Runs scenarios on hosts with systemd, all by default.")
    p.add_argument("scenario", nargs="*", choices=[*all, []], metavar="SCENARIO")
    p.add_argument("--list", action="store_true", help="list the scenarios")
    p.add_argument("--bin", type=Path, help=argparse.SUPPRESS)
    options = p.parse_args()
    if options.list:
        for s in all.values():
            print(f"{s.name:24} {s.proves}")
        return 0

    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "florete/hosts"
    cache.mkdir(parents=True, exist_ok=True)
    sweep(cache)
    verdicts: dict[str, bool] = {}
    cluster = Cluster(here, options.bin, cache / f"run-{os.getpid()}-cluster")
    run = Run(cache, cluster)

    def stop(number: int, _: object) -> None:
        run.close()  # first, so that whoever waits for a host ends
        sys.exit(128 + number)

    for signum in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        signal.signal(signum, stop)
    try:
        cluster.prepare()
        for name in options.scenario or all:
            if why := all[name].missing():
                print(f"\n== {name}: NOT RUN: {why}")
            else:
                verdicts[name] = attempt(all[name], run)
    finally:
        run.close()
        cluster.close()
    failed = [name for name, ok in verdicts.items() if not ok]
    print(f"\n{len(verdicts) - len(failed)} passed, {len(failed)} failed{': ' if failed else ''}{' '.join(failed)}")
    return 1 if failed else 0


sys.exit(main())
