"""Runs scenarios and reports what each proved."""

import argparse
import os
import shutil
import signal
import sys
import time
import traceback
from pathlib import Path

from . import host, network
from .cluster import HOSTS, Cluster
from .container import Container, remove_cgroup
from .debian import SUITES, base
from .jobs import Jobs, at_once
from .machine import Machine
from .network import Network
from .operator import Operator
from .scenario import Scenario, scenarios
from .uml import UML


class Run:
    """The hosts of one scenario, below dir, and everything they leave on this
    machine; prefix begins its names."""

    def __init__(self, dir: Path, prefix: str, base: Path, cluster: Cluster) -> None:
        self.dir, self.prefix, self.base, self.cluster = dir, prefix, base, cluster

    def machines(self, scenario: Scenario) -> tuple[list[Machine], Operator | None]:
        net = Network(self.prefix)
        made = []
        for number, name in enumerate(HOSTS, 1):
            if not scenario.names(name):
                continue
            dir = self.dir / name
            h = UML(name, dir, self.base, net.tap(number)) if name in scenario.own_kernel else Container(name, dir, self.base, net.attach(name, number))
            self.cluster.furnish(h)
            for bundle in scenario.bundles:
                owner, _, file = bundle.partition("/")
                if owner == name:
                    self.cluster.pack(h, file)
            made.append(Machine(h, net, number))
        if not scenario.pages:
            return made, None
        return made, Operator(self.dir / "operator", self.cluster.bin, self.cluster.dir / "florete", self.cluster.here.parent / "scenarios/programs", self.cluster.operator / "signing.key.signed", net, {m.name: m.number for m in made})

    def close(self) -> float:
        return remove_hosts(self.dir, self.prefix)


def remove_hosts(dir: Path, prefix: str) -> float:
    spent = 0.0
    for h in dir.glob("*"):
        host.remove(h)
        spent += remove_cgroup(f"{prefix}-{h.name}")
    network.remove(prefix)
    shutil.rmtree(dir, ignore_errors=True)
    return spent


def sweep(cache: Path) -> None:
    """Removes what runs left behind that were killed."""
    for dir in cache.glob("run-*"):
        pid = dir.name.removeprefix("run-")
        if not Path(f"/proc/{pid}").exists():
            for hosts in dir.glob("hosts-*"):
                remove_hosts(hosts, f"fl{pid}-{hosts.name.removeprefix('hosts-')}")
            shutil.rmtree(dir)


def attempt(scenario: Scenario, suite: str, run: Run) -> bool:
    print(f"\n== {scenario.name} ({suite}): {scenario.proves}", flush=True)
    began = time.monotonic()
    machines = []
    try:
        machines, operator = run.machines(scenario)
        scenario.run(machines, operator, suite == next(iter(SUITES)))
    except Exception:
        traceback.print_exc()
        for m in machines:
            if m.host.running:
                print(f"-- {m.name}\n{last_words(m)}")
        return False
    finally:
        took = time.monotonic() - began
        spent = run.close() + sum(m.host.spent for m in machines)
        for m in machines:
            m.host.wait()
        t = os.times()
        beside = t.user + t.system + t.children_user + t.children_system
        print(f"   {took:.0f} s, containers took {spent:.0f} s of a processor, commands and other kernels {beside:.0f} s", flush=True)
    return True


def last_words(m: Machine) -> str:
    try:
        return m.execute("journalctl --no-pager --lines=25 --output=short-precise; systemctl --failed --no-legend", timeout=60)[1]
    except host.RequestedAssertionFailed as e:
        return f"{e}; its console:\n{m.host.console.read_text(errors='replace')[-2000:]}"


def chosen(all: dict[str, Scenario], names: list[str], suite: str) -> list[tuple[str, Scenario]]:
    """What runs, and on which suite: a scenario on the newest, and on the others where
    it depends on systemd; on the suite that is named, if one is."""
    newest, named = next(iter(SUITES)), bool(suite and names)
    return [(s, all[name]) for s in ([suite] if suite else SUITES) for name in names or all
            if named or s == newest or all[name].every_systemd]


def main() -> int:
    here = Path(__file__).resolve().parent.parent
    all = scenarios(here.parent / "scenarios")
    p = argparse.ArgumentParser(prog="tests/hosts/run", description="Runs scenarios on hosts with systemd, all by default.")
    p.add_argument("scenario", nargs="*", metavar="SCENARIO")
    p.add_argument("--list", action="store_true", help="list the scenarios")
    p.add_argument("--roots", action="store_true", help="only make the root file systems that hosts boot from")
    p.add_argument("--suite", choices=SUITES, default="", help="run on this release of Debian alone: " + ", ".join(f"{s} ({v})" for s, v in SUITES.items()))
    p.add_argument("--jobs", type=int, default=at_once(), help="so many at once, as many as this machine has processors and memory for by default; each prints when it ends")
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
    if options.roots:
        for suite in SUITES:
            base(cache, suite)
        return 0
    sweep(cache)
    dir = cache / f"run-{os.getpid()}"
    todo = sorted(chosen(all, options.scenario, options.suite), key=lambda one: -one[1].minutes)
    jobs = Jobs(dir, min(options.jobs, len(todo)))
    cluster = Cluster(here, options.bin, dir / "prepared")
    prefix = f"fl{os.getpid()}"

    def stop(number: int, _: object) -> None:
        jobs.stop()  # each removes its hosts
        sys.exit(128 + number)

    def begin(suite: str, scenario: Scenario) -> None:
        root = base(cache, suite)
        name = f"{scenario.name} ({suite})"

        def work(room: int) -> bool:
            run = Run(dir / f"hosts-{room}", f"{prefix}-{room}", root, cluster)

            def stop(number: int, _: object) -> None:
                run.close()  # first, so that whoever waits for a host ends
                os._exit(128 + number)

            for signum in SIGNALS:
                signal.signal(signum, stop)
            return attempt(scenario, suite, run)

        jobs.start(name, work)

    for signum in SIGNALS:
        signal.signal(signum, stop)
    try:
        cluster.prepare()
        for suite, scenario in todo:
            jobs.make_room()
            if why := scenario.missing():
                print(f"\n== {scenario.name}: NOT RUN here: {why}", flush=True)
            else:
                begin(suite, scenario)
        verdicts = jobs.finish()
    finally:
        jobs.stop()
        shutil.rmtree(dir, ignore_errors=True)
    failed = [name for name, ok in verdicts.items() if not ok]
    print(f"\n{len(verdicts) - len(failed)} passed, {len(failed)} failed{': ' if failed else ''}{', '.join(failed)}")
    return 1 if failed else 0


SIGNALS = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)

sys.exit(main())
