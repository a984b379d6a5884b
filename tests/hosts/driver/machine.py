"""The machine API of the NixOS test driver (nixos/lib/test-driver), over a host.

What scenarios use of it, with the same names, arguments and meaning."""

import io
import shlex
import signal
import tarfile
import time
from collections.abc import Callable
from pathlib import Path

from .host import Host, RequestedAssertionFailed
from .network import Network

TIMEOUT = 900  # seconds, as that of NixOS has it: whoever waits longer waits in vain, however busy the machine is


def pause(took: float) -> None:
    """Sleeps between two checks, longer where one took long: on a busy machine whoever waits
    must not be what keeps it busy. A check that evaluates the flake takes a second of a processor."""
    time.sleep(min(max(0.1, 3 * took), 5))


class Machine:
    def __init__(self, host: Host, network: Network, number: int) -> None:
        self.name = host.name
        self.host, self.network, self.number = host, network, number

    # Power.

    def start(self, allow_reboot: bool = False) -> None:
        """Boots the host, unless it runs. All may reboot here."""
        if not self.host.running:
            self.host.boot()

    def shutdown(self) -> None:
        self.host.shutdown()

    def crash(self) -> None:
        """Ends everything on the host at once, as a loss of power."""
        self.host.signal(signal.SIGKILL)

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
        done = self.host.execute(command, b"", timeout or 900)
        self.stderr = done.err
        return (done.code if check_return else -1), done.out

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
        at, archive = Path(target), io.BytesIO()
        with tarfile.open(fileobj=archive, mode="w") as tar:
            tar.add(Path(source).resolve(), at.name)
        done = self.host.execute(f"mkdir -p {shlex.quote(str(at.parent))}; tar -xC {shlex.quote(str(at.parent))}", archive.getvalue(), 900)
        if done.code != 0:
            raise RequestedAssertionFailed(f"{self.name}: {source} cannot be copied to {target}: {done.err}")

    def _outcome(self, command: str, want: int) -> tuple[bool, str]:
        code, out = self.execute(command)
        return (code == 0) == (want == 0), out

    def _until(self, ask: Callable[[], tuple[bool, str]], what: str, timeout: float) -> str:
        end = time.monotonic() + timeout
        while True:
            began = time.monotonic()
            done, out = ask()
            if done:
                return out
            if time.monotonic() > end:
                raise RequestedAssertionFailed(f"{self.name}: waited {timeout} s in vain for {what}; last: {out}")
            pause(time.monotonic() - began)
