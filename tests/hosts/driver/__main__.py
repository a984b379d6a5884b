"""Runs scenarios and tells what each proved."""

import argparse
import os
import shutil
import signal
import sys
import time
import traceback
from pathlib import Path

from . import host, network
from .cluster import Cluster, HOSTS
from .container import Container, remove_cgroup
from .debian import base
from .machine import Machine
from .network import Network
from .scenario import Scenario, scenarios
from .uml import UML


class Run:
    """The hosts of one scenario at a time, below dir, and everything they leave on
    this machine; prefix begins its names."""

    def __init__(self, dir: Path, prefix: str, base: Path, cluster: Cluster) -> None:
        self.dir, self.prefix, self.base, self.cluster = dir, prefix, base, cluster

    def machines(self, scenario: Scenario) -> list[Machine]:
        net = Network(self.prefix)
        made = []
        for number, name in enumerate(HOSTS, 1):
            dir = self.dir / name
            h = UML(name, dir, self.base, net.tap(number)) if name in scenario.own_kernel else Container(name, dir, self.base, net.attach(name, number))
            self.cluster.furnish(h)
            for bundle in scenario.bundles:
                owner, _, file = bundle.partition("/")
                if owner == name:
                    self.cluster.pack(h, file)
            made.append(Machine(h, net, number))
        return made

    def close(self) -> None:
        remove_hosts(self.dir, self.prefix)


def remove_hosts(dir: Path, prefix: str) -> None:
    for h in dir.glob("*"):
        host.remove(h)
        remove_cgroup(f"{prefix}-{h.name}")
    network.remove(prefix)
    shutil.rmtree(dir, ignore_errors=True)


def sweep(cache: Path) -> None:
    """Removes what runs left behind that were killed."""
    for dir in cache.glob("run-*"):
        pid = dir.name.removeprefix("run-")
        if not Path(f"/proc/{pid}").exists():
            remove_hosts(dir / "hosts", f"fl{pid}")
            shutil.rmtree(dir)


def attempt(scenario: Scenario, run: Run) -> bool:
    print(f"\n== {scenario.name}: {scenario.proves}", flush=True)
    began = time.monotonic()
    machines = []
    try:
        machines = run.machines(scenario)
        scenario.run(machines)
    except Exception:
        traceback.print_exc()
        for m in machines:
            if m.host.running:
                print(f"-- {m.name}\n{last_words(m)}")
        return False
    finally:
        print(f"   {time.monotonic() - began:.0f} s", flush=True)
        run.close()
    return True


def last_words(m: Machine) -> str:
    try:
        return m.execute("journalctl --no-pager --lines=25 --output=short-precise; systemctl --failed --no-legend", timeout=60)[1]
    except host.RequestedAssertionFailed as e:
        return f"{e}; its console:\n{m.host.console.read_text(errors='replace')[-2000:]}"


def main() -> int:
    here = Path(__file__).resolve().parent.parent
    all = scenarios(here.parent / "scenarios")
    p = argparse.ArgumentParser(prog="tests/hosts/run", description="Runs scenarios on hosts with systemd, all by default.")
    p.add_argument("scenario", nargs="*", metavar="SCENARIO")
    p.add_argument("--list", action="store_true", help="list the scenarios")
    p.add_argument("--bin", type=Path, help=argparse.SUPPRESS)
    options = p.parse_args()
    for name in options.scenario:
        if name not in all:
            p.error(f"there is no scenario {name}: --list shows those there are")
    if options.list:
        for s in all.values():
            print(f"{s.name:24} {s.proves}")
        return 0

    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "florete/hosts"
    cache.mkdir(parents=True, exist_ok=True)
    sweep(cache)
    verdicts: dict[str, bool] = {}
    dir = cache / f"run-{os.getpid()}"
    cluster = Cluster(here, options.bin, dir / "prepared")
    run = Run(dir / "hosts", f"fl{os.getpid()}", base(cache), cluster)

    def stop(number: int, _: object) -> None:
        run.close()  # first, so that whoever waits for a host ends
        sys.exit(128 + number)

    for signum in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        signal.signal(signum, stop)
    try:
        cluster.prepare()
        for name in options.scenario or all:
            if why := all[name].missing():
                print(f"\n== {name}: NOT RUN here: {why}", flush=True)
            else:
                verdicts[name] = attempt(all[name], run)
    finally:
        run.close()
        shutil.rmtree(dir, ignore_errors=True)
    failed = [name for name, ok in verdicts.items() if not ok]
    print(f"\n{len(verdicts) - len(failed)} passed, {len(failed)} failed{': ' if failed else ''}{' '.join(failed)}")
    return 1 if failed else 0


sys.exit(main())
