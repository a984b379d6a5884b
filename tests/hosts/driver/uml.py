"""A host with a kernel of its own: user-mode Linux, which is a process of this
machine and needs no KVM. Its clock, its memory and its disk are no one else's: the
clock can be set, and a crash loses what was written but not flushed.

Boots in ten seconds; a system call costs about 60 microseconds."""

import json
import shutil
import socket
import threading
from base64 import b64encode
from pathlib import Path

from .command import run
from .host import Done, Host, RequestedAssertionFailed, shell
from .network import Tap

KERNEL = "linux.uml"
# $1 root file system, $2 lower, $3 upper, $4 work, $5 disk; then what is bound, and where.
MAKE_DISK = """
set -eu
mount -t overlay -o "lowerdir=$2,upperdir=$3,workdir=$4" overlay "$1"
root=$1 disk=$5
shift 5
while [ $# -gt 0 ]; do
  mkdir -p "$root$2"
  mount --bind "$1" "$root$2"
  shift 2
done
mke2fs -q -t ext4 -d "$root" "$disk" 2G
"""


class UML(Host):
    keeper = "unshare"

    def __init__(self, name: str, dir: Path, base: Path, tap: Tap) -> None:
        super().__init__(name, dir, base)
        self.tap, self.disk, self.line = tap, dir / "disk", Line(name)

    def boot(self) -> None:
        if not self.disk.exists():
            self._make_disk()
        sockets = self.dir / "sockets"
        shutil.rmtree(sockets, ignore_errors=True)  # of the last boot, when it crashed
        end = self.line.open()
        tap = f"transport=tap,ifname={self.tap.device},mac={self.tap.mac},gro=1"
        # A process namespace of its own: the kernel's processes end with its first.
        self._run("ip", "netns", "exec", self.tap.namespace, "unshare", "--pid", "--fork", "--kill-child", "--mount-proc",
                  KERNEL, "mem=512M", f"ubd0={self.disk}", "root=/dev/ubda", "rw", f"vec0:{tap}", f"ssl0=fd:{end.fileno()}",
                  "con=null", "con0=null,fd:1", f"uml_dir={sockets}/", "lsm=yama",
                  f"systemd.hostname={self.name}", f"systemd.setenv=ADDRESS={self.tap.address}",
                  env={"TMPDIR": str(self.dir)}, fds=(end.fileno(),))
        end.close()

    def shutdown(self) -> None:
        if self.running:
            self.execute("systemctl --no-block poweroff", b"", 60)
            self.signal(0)

    def execute(self, command: str, stdin: bytes, timeout: float) -> Done:
        if not self.running:
            raise RequestedAssertionFailed(f"{self.name} is not running")
        return self.line.execute(command, stdin, timeout)

    def wait(self) -> None:
        """Waits for the ends of all kernels, once the host is removed: what they took counts as ours then."""
        for process in self._processes:
            process.wait()

    def _make_disk(self) -> None:
        self.work.mkdir()
        binds = [p for bind in self.binds.items() for p in bind]
        run("unshare", "--mount", "--propagation", "private", "bash", "-c", MAKE_DISK, "disk",
            self.root, self.lower, self.upper, self.work, self.disk, *binds)


# What of a request is sent at once. A terminal holds 4 KiB, and user-mode Linux never
# reads on once that was full.
PIECE = 2000


class Line:
    """A host's serial line, where ../root/usr/local/sbin/shell listens: it says that
    it is there, and then answers each piece of a request, the last with the result."""

    def __init__(self, name: str) -> None:
        self.name, self.lock = name, threading.Lock()

    def open(self) -> socket.socket:
        """A new line, for a boot; returns the host's end."""
        ours, theirs = socket.socketpair()
        self.socket, self.file, self.greeted = ours, ours.makefile("rb"), False
        return theirs

    def execute(self, command: str, stdin: bytes, timeout: float) -> Done:
        with self.lock:
            if not self.greeted:
                self._read(timeout)
                self.greeted = True
            ask = json.dumps({"argv": shell(command), "stdin": b64encode(stdin).decode(), "timeout": timeout}).encode()
            pieces = [ask[i:i + PIECE] for i in range(0, len(ask), PIECE)]
            for piece in pieces[:-1]:
                self._write(b"+" + piece)
                self._read(timeout)
            self._write(b"=" + pieces[-1])
            return Done(**json.loads(self._read(timeout + 60)))

    def _write(self, line: bytes) -> None:
        try:
            self.socket.sendall(line + b"\n")
        except OSError as e:
            raise RequestedAssertionFailed(f"{self.name} went down") from e

    def _read(self, timeout: float) -> bytes:
        self.socket.settimeout(timeout)
        try:
            answer = self.file.readline()
        except OSError as e:  # once late, the line is of no use any more
            raise RequestedAssertionFailed(f"{self.name}: no answer within {timeout:.0f} s") from e
        if not answer.endswith(b"\n"):
            raise RequestedAssertionFailed(f"{self.name} went down")
        return answer
