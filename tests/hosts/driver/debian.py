"""The root file system that every host boots from: a small Debian, made once."""

import fcntl
import hashlib
import shutil
from pathlib import Path

from .command import run

# Of each release, with its version of systemd: the first runs all scenarios, the
# others those that say that they depend on it.
SUITES = {"trixie": "systemd 257", "bookworm": "systemd 252"}
PACKAGES = "systemd systemd-sysv systemd-timesyncd dbus libnss-systemd iproute2 iputils-ping procps python3 curl openssl nftables openssh-server etcd-server etcd-client swtpm nginx-light".split()
# What hosts cannot have, what would make their first minutes differ, and what is a process more
# at each of their thousand boots.
MASKED = """systemd-udevd.service systemd-udevd-kernel.socket systemd-udevd-control.socket systemd-logind.service
kmod-static-nodes.service modprobe@.service systemd-modules-load.service systemd-binfmt.service proc-sys-fs-binfmt_misc.automount
console-getty.service getty.target apt-daily.timer apt-daily-upgrade.timer dpkg-db-backup.timer e2scrub_all.timer e2scrub_reap.service fstrim.timer
dev-hugepages.mount dev-mqueue.mount sys-kernel-config.mount sys-kernel-debug.mount sys-kernel-tracing.mount sys-fs-fuse-connections.mount
run-lock.mount systemd-tmpfiles-setup-dev-early.service systemd-tmpfiles-setup-dev.service systemd-remount-fs.service
systemd-random-seed.service systemd-journal-catalog-update.service systemd-update-done.service systemd-update-utmp.service
ldconfig.service systemd-ask-password-console.path systemd-ask-password-wall.path systemd-tmpfiles-clean.timer""".split()
GENERATORS = "usr/lib/systemd/system-generators"  # run at each reload, for nothing that hosts have
DISABLED = ["systemd-timesyncd.service", "ssh.service", "etcd.service", "nginx.service"]


def base(cache: Path, suite: str) -> Path:
    """The root file system of a suite, in cache; a change of what is in it makes another."""
    recipe = "\n".join([suite, *PACKAGES, *MASKED, *DISABLED, GENERATORS])
    root = cache / f"{suite}-{hashlib.sha256(recipe.encode()).hexdigest()[:12]}"
    cache.mkdir(parents=True, exist_ok=True)
    with open(cache / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # two runs at once make it once
        if not root.exists():
            print(f"hosts: making {root}, once", flush=True)
            make(root, suite)
    return root


def make(root: Path, suite: str) -> None:
    new = root.with_suffix(".new")
    shutil.rmtree(new, ignore_errors=True)
    run("mmdebstrap", "--quiet", "--variant=minbase", f"--include={','.join(PACKAGES)}", suite, new)
    run("chroot", new, "systemctl", "mask", *MASKED)
    run("chroot", new, "systemctl", "disable", *DISABLED)
    run("chroot", new, "systemctl", "set-default", "multi-user.target")
    masks = new / "etc/systemd/system-generators"
    masks.mkdir(exist_ok=True)
    for generator in (new / GENERATORS).iterdir():
        (masks / generator.name).symlink_to("/dev/null")
    (new / "etc/machine-id").write_text("")
    (new / "etc/hostname").unlink(missing_ok=True)
    new.rename(root)
