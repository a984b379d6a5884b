"""A host that shares this machine's kernel: systemd as PID 1 in systemd-nspawn, on an
overlay of the base root. Boots in a second.

Works as root without an outer systemd, also where cgroups are version 1: each host
sees a pure version 2 tree of its own."""

import hashlib
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

from .host import Done, Host, RequestedAssertionFailed, first, shell

# $1 root file system, $2 lower, $3 upper, $4 work, $5 cgroup; then the command.
# A mount namespace of its own: overlay, and cgroup2 where the outer tree was.
BOOT = """
set -eu
mount -t overlay -o "lowerdir=$2,upperdir=$3,workdir=$4" overlay "$1"
umount -l /sys/fs/cgroup
mount -t cgroup2 cgroup2 /sys/fs/cgroup
mkdir -p "/sys/fs/cgroup/$5"
echo $$ > "/sys/fs/cgroup/$5/cgroup.procs"
shift 5
exec "$@"
"""


class Container(Host):
    """namespace is its network's, a name that no other host has, and its cgroup's."""

    keeper = "systemd-nspawn"

    def __init__(self, name: str, dir: Path, base: Path, namespace: str) -> None:
        super().__init__(name, dir, base)
        self.namespace = namespace

    def boot(self) -> None:
        self.spent += remove_cgroup(self.namespace)
        shutil.rmtree(self.work, ignore_errors=True)
        self.work.mkdir()
        uuid = hashlib.md5(self.namespace.encode()).hexdigest()
        self._run("unshare", "--mount", "--propagation", "private", "bash", "-c", BOOT, "boot",
                  self.root, self.lower, self.upper, self.work, self.namespace,
                  "systemd-nspawn", "--quiet", f"--directory={self.root}", "--boot", "--register=no", "--keep-unit",
                  f"--machine={self.name}", f"--hostname={self.name}", f"--uuid={uuid}",
                  f"--network-namespace-path=/run/netns/{self.namespace}", "--capability=all",
                  "--system-call-filter=bpf @keyring perf_event_open", "--resolv-conf=off", "--timezone=off",
                  "--link-journal=no", "--console=read-only", "--kill-signal=SIGRTMIN+3",
                  *(f"--bind-ro={path}:{at}" for path, at in self.binds.items()),
                  # =network, not =1: that would let a host set the machine's own sysctls.
                  env={"SYSTEMD_NSPAWN_API_VFS_WRITABLE": "network"})

    def shutdown(self) -> None:
        self.signal(signal.SIGRTMIN + 4)

    def processor(self) -> float:
        top = cgroup(self.namespace)
        return self.spent + (usage(top) if top else 0)

    def execute(self, command: str, stdin: bytes, timeout: float) -> Done:
        nsenter = ["nsenter", f"--target={self._leader(timeout)}", "--mount", "--uts", "--ipc", "--net", "--pid", "--cgroup", "--root", "--wd"]
        try:
            done = subprocess.run(nsenter + shell(command), input=stdin, capture_output=True, timeout=timeout)
        except subprocess.TimeoutExpired:
            return Done(124, f"no end within {timeout:.0f} s", "")
        return Done(done.returncode, done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace"))

    def _leader(self, timeout: float) -> int:
        """The host's PID 1 as this machine sees it, once systemd listens there."""
        end = time.monotonic() + timeout
        while self.running:
            pid = first(self._processes[-1].pid, self.keeper)
            if pid and Path(f"/proc/{pid}/root/run/systemd/private").exists():
                return pid
            if time.monotonic() > end:
                raise RequestedAssertionFailed(f"{self.name}: systemd is not there after {timeout:.0f} s")
            time.sleep(0.02)
        raise RequestedAssertionFailed(f"{self.name} is not running")


def remove_cgroup(name: str) -> float:
    """Removes what a host that ended has left of its cgroups, and returns the seconds of a
    processor that it took. They keep settings, a frozen one would freeze the unit at the next boot.
    Where systemd-nspawn itself was killed, the host goes on: it ends here."""
    top = cgroup(name)
    if not top:
        return 0
    (top / "cgroup.kill").write_text("1")
    while "populated 1" in (top / "cgroup.events").read_text():
        time.sleep(0.01)
    spent = usage(top)
    for path, _, _ in os.walk(top, topdown=False):
        os.rmdir(path)
    return spent


def cgroup(name: str) -> Path | None:
    """The cgroup of a host."""
    mounts = [line.split() for line in Path("/proc/mounts").read_text().splitlines()]
    tops = [Path(mount[1]) / name for mount in mounts if mount[2] == "cgroup2"]
    return next((top for top in tops if top.exists()), None)


def usage(top: Path) -> float:
    """Seconds of a processor that a cgroup took."""
    return int((top / "cpu.stat").read_text().split()[1]) / 1e6  # usage_usec
