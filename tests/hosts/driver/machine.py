"""The machine API of the NixOS test driver (nixos/lib/test-driver), over a container.

What scenarios use of it, with the same names, arguments and meaning."""

import shlex
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from .container import Container
from .network import Network

TIMEOUT = 120
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


class RequestedAssertionFailed(AssertionError):
    """What a scenario asked for does not hold."""


class Machine:
    def __init__(self, container: Container, network: Network, number: int) -> None:
        self.name = container.name
        self.container, self.network, self.number = container, network, number

    # Power.

    def start(self) -> None:
        if not self.container.running:
            self.container.boot()

    def shutdown(self) -> None:
        self.container.signal(signal.SIGRTMIN + 4)

    def crash(self) -> None:
        """Ends everything on the host at once, as a loss of power."""
        self.container.signal(signal.SIGKILL)

    def reboot(self) -> None:
        self.shutdown()
        self.start()

    # The network.

    def block(self) -> None:
        """Cuts the host's link."""
        self.network.link(self.number, "down")

    def unblock(self) -> None:
        self.network.link(self.number, "up")

    # Commands.

    def execute(self, command: str, check_return: bool = True, timeout: float | None = 900) -> tuple[int, str]:
        """Runs a shell command as root; its exit code and what it printed."""
        leader = self._leader(timeout or 900)
        nsenter = ["nsenter", f"--target={leader}", "--mount", "--uts", "--ipc", "--net", "--pid", "--cgroup", "--root", "--wd",
                   "env", "-i", f"PATH={PATH}", "HOME=/root", "bash", "-c", f"set -euo pipefail; {command}"]
        try:
            done = subprocess.run(nsenter, stdin=subprocess.DEVNULL, capture_output=True, timeout=timeout)
        except subprocess.TimeoutExpired:
            return 124, f"no end within {timeout:.0f} s"
        self.stderr = done.stderr.decode(errors="replace")
        return (done.returncode if check_return else -1), done.stdout.decode(errors="replace")

    def succeed(self, *commands: str, timeout: float | None = None) -> str:
        output = ""
        for command in commands:
            code, out = self.execute(command, timeout=timeout)
            if code != 0:
                raise RequestedAssertionFailed(f"{self.name}: `{command}` failed: exit {code}: {out}{self.stderr}")
            output += out
        return output

    def fail(self, *commands: str, timeout: float | None = None) -> str:
        output = ""
        for command in commands:
            code, out = self.execute(command, timeout=timeout)
            if code == 0:
                raise RequestedAssertionFailed(f"{self.name}: `{command}` succeeded, it must not: {out}")
            output += out
        return output

    # Waiting.

    def wait_until_succeeds(self, command: str, timeout: int = TIMEOUT) -> str:
        return self._until(lambda: self._outcome(command, 0), f"`{command}` to succeed", timeout)

    def wait_until_fails(self, command: str, timeout: int = TIMEOUT) -> str:
        return self._until(lambda: self._outcome(command, 1), f"`{command}` to fail", timeout)

    def wait_for_file(self, filename: str, timeout: int = TIMEOUT) -> None:
        self.wait_until_succeeds(f"test -e {shlex.quote(filename)}", timeout)

    def wait_for_open_port(self, port: int, addr: str = "localhost", timeout: int = TIMEOUT) -> None:
        self.wait_until_succeeds(f"(: < /dev/tcp/{addr}/{port})", timeout)

    def wait_for_unit(self, unit: str, user: str | None = None, timeout: int = TIMEOUT) -> None:
        """Waits until a unit is active; fails at once when it is failed, or
        inactive with nothing left to start."""
        assert user is None, "units of users are not looked after here"

        def active() -> tuple[bool, str]:
            state = self.get_unit_property(unit, "ActiveState")
            if state == "failed":
                raise RequestedAssertionFailed(f'{self.name}: unit "{unit}" reached state "failed"\n{self.journal(unit)}')
            if state == "inactive" and not self.systemctl("list-jobs --no-legend")[1].strip():
                if self.get_unit_property(unit, "ActiveState") == "inactive":
                    raise RequestedAssertionFailed(f'{self.name}: unit "{unit}" is inactive and there are no pending jobs')
            return state == "active", state

        self._until(active, f"{unit} to be active", timeout)

    # systemd.

    def systemctl(self, q: str, user: str | None = None) -> tuple[int, str]:
        assert user is None, "units of users are not looked after here"
        return self.execute(f"systemctl {q}")

    def get_unit_property(self, unit: str, property: str) -> str:
        return self.succeed(f"systemctl show --value --property={property} {shlex.quote(unit)}").strip()

    def start_job(self, jobname: str) -> tuple[int, str]:
        return self.systemctl(f"start {jobname}")

    def stop_job(self, jobname: str) -> tuple[int, str]:
        return self.systemctl(f"stop {jobname}")

    def journal(self, unit: str, lines: int = 20) -> str:
        return self.execute(f"journalctl --no-pager --output=short-precise --lines={lines} --unit={shlex.quote(unit)}")[1]

    # Files.

    def copy_from_host(self, source: str, target: str) -> None:
        """Copies a file or directory of the machine that runs the tests."""
        at = Path(f"/proc/{self._leader(60)}/root{target}")
        at.parent.mkdir(parents=True, exist_ok=True)
        if Path(source).is_dir():
            shutil.copytree(source, at, dirs_exist_ok=True)
        else:
            shutil.copy(source, at)

    def _outcome(self, command: str, want: int) -> tuple[bool, str]:
        code, out = self.execute(command)
        return (code == 0) == (want == 0), out

    def _leader(self, timeout: float) -> int:
        end = time.monotonic() + timeout
        while (leader := self.container.leader()) is None:
            if not self.container.running:
                raise RequestedAssertionFailed(f"{self.name} is not running")
            if time.monotonic() > end:
                raise RequestedAssertionFailed(f"{self.name}: systemd is not there after {timeout:.0f} s")
            time.sleep(0.02)
        return leader

    def _until(self, ask: Callable[[], tuple[bool, str]], what: str, timeout: float) -> str:
        end = time.monotonic() + timeout
        while True:
            done, out = ask()
            if done:
                return out
            if time.monotonic() > end:
                raise RequestedAssertionFailed(f"{self.name}: waited {timeout} s in vain for {what}; last: {out}")
            time.sleep(0.1)
