"""One host: systemd as PID 1 in systemd-nspawn, on an overlay of the base root.

Works as root without an outer systemd, also where cgroups are version 1: each host
sees a pure version 2 tree of its own."""

import contextlib
import hashlib
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

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


class Container:
    """A host's file system and process. dir holds all of it; namespace is its
    network's, a name that no other host has, and its cgroup's."""

    def __init__(self, name: str, dir: Path, base: Path, namespace: str) -> None:
        self.name, self.dir, self.base, self.namespace = name, dir, base, namespace
        self.binds: dict[Path, str] = {}  # read-only, by path on this machine
        self.upper, self.root, self.console = dir / "upper", dir / "root", dir / "console"
        for d in (self.upper, self.root):
            d.mkdir(parents=True)
        self._nspawn: subprocess.Popen[bytes] | None = None

    def boot(self) -> None:
        remove_cgroup(self.namespace)
        work = self.dir / "work"
        shutil.rmtree(work, ignore_errors=True)
        work.mkdir()
        uuid = hashlib.md5(self.namespace.encode()).hexdigest()
        args = ["unshare", "--mount", "--propagation", "private", "bash", "-c", BOOT, "boot",
                self.root, self.base, self.upper, work, self.namespace,
                "systemd-nspawn", "--quiet", f"--directory={self.root}", "--boot", "--register=no", "--keep-unit",
                f"--machine={self.name}", f"--hostname={self.name}", f"--uuid={uuid}",
                f"--network-namespace-path=/run/netns/{self.namespace}", "--capability=all",
                "--system-call-filter=bpf @keyring perf_event_open", "--resolv-conf=off", "--timezone=off",
                "--link-journal=no", "--console=read-only", "--kill-signal=SIGRTMIN+3",
                *(f"--bind-ro={path}:{at}" for path, at in self.binds.items())]
        # =network, not =1: that would let a host set the machine's own sysctls.
        env = os.environ | {"SYSTEMD_NSPAWN_API_VFS_WRITABLE": "network"}
        with open(self.console, "ab") as console:
            self._nspawn = subprocess.Popen([str(a) for a in args], stdin=subprocess.DEVNULL, stdout=console,
                                            stderr=console, env=env, start_new_session=True)
        (self.dir / "nspawn.pid").write_text(str(self._nspawn.pid))

    @property
    def running(self) -> bool:
        return self._nspawn is not None and self._nspawn.poll() is None

    def leader(self) -> int | None:
        """The host's PID 1 as this machine sees it, once systemd listens there."""
        pid = child(self._nspawn.pid) if self._nspawn and self.running else None
        return pid if pid and Path(f"/proc/{pid}/root/run/systemd/private").exists() else None

    def signal(self, number: int, timeout: float = 60) -> None:
        """Signals PID 1 and waits until the host is gone. Never the nspawn
        process: its death would leave the host behind."""
        if not self._nspawn or not self.running:
            return
        end = time.monotonic() + timeout
        while self.running:
            if time.monotonic() > end:
                raise TimeoutError(f"{self.name}: still there {timeout:.0f} s after signal {number}")
            if pid := child(self._nspawn.pid):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, number)
                number = signal.SIGKILL if number == signal.SIGKILL else 0
            time.sleep(0.02)


def child(pid: int) -> int | None:
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        if children and Path(f"/proc/{pid}/comm").read_text().strip() == "systemd-nspawn":
            return int(children[0])
    except (FileNotFoundError, ProcessLookupError):
        pass
    return None


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def remove(dir: Path, cgroup: str) -> None:
    """Ends a host and deletes it, whoever started it."""
    pid_file = dir / "nspawn.pid"
    pid = int(pid_file.read_text()) if pid_file.exists() else 0
    while pid and alive(pid):
        if leader := child(pid):
            with contextlib.suppress(ProcessLookupError):
                os.kill(leader, signal.SIGKILL)
        time.sleep(0.02)
    remove_cgroup(cgroup)
    shutil.rmtree(dir, ignore_errors=True)


def remove_cgroup(name: str) -> None:
    """Removes what a host that ended has left of its cgroups. They keep settings,
    a frozen one would freeze the unit at the next boot."""
    for mount in Path("/proc/mounts").read_text().splitlines():
        if mount.split()[2] == "cgroup2":
            for path, _, _ in os.walk(Path(mount.split()[1]) / name, topdown=False):
                os.rmdir(path)
