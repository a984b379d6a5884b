"""Runs scenarios and reports what each proved."""

import argparse
import os
import shutil
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from . import host, network
from .cluster import HOSTS, Cluster
from .container import Container, remove_cgroup
from .debian import SUITES, base
from .jobs import Jobs, at_once
from .machine import Machine
from .network import Network
from .operator import Operator
from .scenario import CommonCluster, Scenario, scenarios
from .uml import UML


class Run:
    """The hosts of one scenario, or of some in a common cluster, below dir, and everything they
    leave on this machine; prefix begins its names."""

    def __init__(self, dir: Path, prefix: str, base: Path, cluster: Cluster) -> None:
        self.dir, self.prefix, self.base, self.cluster = dir, prefix, base, cluster
        self.hosts: list[Machine] = []

    def machines(self, scenario: Scenario) -> tuple[list[Machine], Operator | None]:
        net = Network(self.prefix)
        self.hosts = made = []
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

    def containers(self) -> float:
        """Seconds of a processor that the hosts took, apart from those with a kernel of their own."""
        return sum(m.host.processor() for m in self.hosts)

    def close(self) -> None:
        remove_hosts(self.dir, self.prefix)

    def end(self) -> None:
        """Closes it, and waits for kernels that end then: what they took counts as ours."""
        self.close()
        for m in self.hosts:
            if isinstance(m.host, UML):
                m.host.wait()
        self.hosts = []


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
            for hosts in dir.glob("hosts-*"):
                remove_hosts(hosts, f"fl{pid}-{hosts.name.removeprefix('hosts-')}")
            shutil.rmtree(dir)


def attempt(together: list[Scenario], suite: str, run: Run) -> Iterator[str]:
    """Runs one scenario, or several in their common cluster; the names of those that pass."""
    first, newest = together[0], suite == next(iter(SUITES))
    if not first.common_cluster:
        if passes(titled(first, suite), run, lambda: first.run(*run.machines(first), newest), last=True):
            yield first.name
        return
    cluster = CommonCluster(first.path.parent, first.common_cluster)
    for scenario in together:
        if not cluster.at_work:  # nor is it after a scenario that failed
            run.end()
            if not passes(f"the common cluster {cluster.revision} ({suite})", run, lambda: cluster.bring_up(run.machines(first)[0])):
                break
        if passes(titled(scenario, suite), run, partial(cluster.run, scenario, newest), last=scenario == together[-1]):
            yield scenario.name
    run.end()


def titled(scenario: Scenario, suite: str) -> str:
    return f"{scenario.name} ({suite}): {scenario.proves}"


def passes(what: str, run: Run, do: Callable[[], None], last: bool = False) -> bool:
    """Whether it does that; prints how it went, and what it took. After the last, hosts go."""
    print(f"\n== {what}", flush=True)
    began, containers, beside = time.monotonic(), run.containers(), commands()
    try:
        do()
    except Exception:
        traceback.print_exc()
        for m in run.hosts:
            if m.host.running:
                print(f"-- {m.name}\n{last_words(m)}")
        return False
    finally:
        took, containers = time.monotonic() - began, run.containers() - containers
        if last:
            run.end()
        print(f"   {took:.0f} s, containers took {containers:.0f} s of a processor, commands and other kernels {commands() - beside:.0f} s", flush=True)
    return True


def commands() -> float:
    """Seconds of a processor that this process and its children took, once they ended."""
    t = os.times()
    return t.user + t.system + t.children_user + t.children_system


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


def can(scenario: Scenario) -> bool:
    """Whether a scenario can run here; says if not."""
    if why := scenario.missing():
        print(f"\n== {scenario.name}: NOT RUN here: {why}", flush=True)
    return not why


def together(todo: list[tuple[str, Scenario]]) -> list[tuple[str, list[Scenario]]]:
    """What runs on the same hosts, by suite: scenarios in a common cluster, and each other one by
    itself. Begins with what takes longest."""
    found: dict[tuple[str, str], list[Scenario]] = {}
    for suite, scenario in todo:
        found.setdefault((suite, f"{scenario.common_cluster} in common" if scenario.common_cluster else scenario.name), []).append(scenario)
    return sorted([(suite, some) for (suite, _), some in found.items()], key=lambda one: -sum(s.minutes for s in one[1]))


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
    todo = together([(suite, s) for suite, s in chosen(all, options.scenario, options.suite) if can(s)])
    jobs = Jobs(dir, min(options.jobs, len(todo)))
    cluster = Cluster(here, options.bin, dir / "prepared")
    prefix = f"fl{os.getpid()}"

    def stop(number: int, _: object) -> None:
        jobs.stop()  # each removes its hosts
        sys.exit(128 + number)

    def begin(suite: str, some: list[Scenario]) -> None:
        root = base(cache, suite)

        def work(room: int) -> Iterator[str]:
            run = Run(dir / f"hosts-{room}", f"{prefix}-{room}", root, cluster)

            def stop(number: int, _: object) -> None:
                run.close()  # first, so that whoever waits for a host ends
                os._exit(128 + number)

            for signum in SIGNALS:
                signal.signal(signum, stop)
            for name in attempt(some, suite, run):
                yield f"{name} ({suite})"

        jobs.start([f"{s.name} ({suite})" for s in some], work)

    for signum in SIGNALS:
        signal.signal(signum, stop)
    try:
        cluster.prepare()
        for suite, some in todo:
            jobs.make_room()
            begin(suite, some)
        verdicts = jobs.finish()
    finally:
        jobs.stop()
        shutil.rmtree(dir, ignore_errors=True)
    failed = [name for name, ok in verdicts.items() if not ok]
    print(f"\n{len(verdicts) - len(failed)} passed, {len(failed)} failed{': ' if failed else ''}{', '.join(failed)}")
    return 1 if failed else 0


SIGNALS = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)

sys.exit(main())
