"""The root file system that every host boots from: a small Debian, made once."""

import fcntl
import hashlib
import shutil
from pathlib import Path

from .command import run

SUITE = "bookworm"
PACKAGES = "systemd systemd-sysv dbus libnss-systemd iproute2 iputils-ping procps python3 curl openssl".split()
# What a container cannot have, and what would make a host's first minutes differ.
MASKED = """systemd-udevd.service systemd-udevd-kernel.socket systemd-udevd-control.socket systemd-timesyncd.service systemd-logind.service
console-getty.service getty.target apt-daily.timer apt-daily-upgrade.timer dpkg-db-backup.timer e2scrub_all.timer fstrim.timer""".split()


def base(cache: Path) -> Path:
    """The root file system, in cache; a change of what is in it makes another."""
    recipe = "\n".join([SUITE, *PACKAGES, *MASKED])
    root = cache / f"{SUITE}-{hashlib.sha256(recipe.encode()).hexdigest()[:12]}"
    cache.mkdir(parents=True, exist_ok=True)
    with open(cache / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # two runs at once make it once
        if not root.exists():
            print(f"hosts: making {root}, once", flush=True)
            make(root)
    return root


def make(root: Path) -> None:
    new = root.with_suffix(".new")
    shutil.rmtree(new, ignore_errors=True)
    run("mmdebstrap", "--quiet", "--variant=minbase", f"--include={','.join(PACKAGES)}", SUITE, new)
    run("chroot", new, "systemctl", "mask", *MASKED)
    run("chroot", new, "systemctl", "set-default", "multi-user.target")
    (new / "etc/machine-id").write_text("")
    (new / "etc/hostname").unlink(missing_ok=True)
    new.rename(root)
