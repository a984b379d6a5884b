"""The network of a run: a namespace that is the switch, and one for each host.
Nothing touches the machine's own."""

from typing import NamedTuple

from .command import run

SUBNET = "10.77.0"


class Tap(NamedTuple):
    """A network card that a process may take, for a kernel of its own."""

    namespace: str
    device: str
    mac: str
    address: str


class Network:
    """prefix makes the names of its namespaces unique."""

    def __init__(self, prefix: str) -> None:
        self.prefix = prefix
        self.switch = f"{prefix}-sw"
        run("ip", "netns", "add", self.switch)
        self._ip(self.switch, "link add br0 type bridge")
        self._ip(self.switch, "link set br0 up")

    def attach(self, host: str, number: int) -> str:
        """Gives a host its namespace, with the address 10.77.0.<number>, and
        returns the namespace's name."""
        namespace = f"{self.prefix}-{host}"
        run("ip", "netns", "add", namespace)
        self._ip(namespace, "link set lo up")
        self._ip(namespace, f"link add eth1 address {mac(number)} type veth peer name v{number} netns {self.switch}")
        self._ip(self.switch, f"link set v{number} master br0 up")
        self._ip(namespace, f"addr add {address(number)} dev eth1")
        self._ip(namespace, "link set eth1 up")
        return namespace

    def join(self, number: int) -> None:
        """Gives the switch an address, for who works there."""
        self._ip(self.switch, f"addr add {address(number)} dev br0")

    def tap(self, number: int) -> Tap:
        """Makes the card of a host with a kernel of its own."""
        device = f"v{number}"
        self._ip(self.switch, f"tuntap add {device} mode tap")
        self._ip(self.switch, f"link set {device} master br0 up")
        return Tap(self.switch, device, mac(number), address(number))

    def link(self, number: int, state: str) -> None:
        """Sets a host's link up or down, at the switch."""
        self._ip(self.switch, f"link set v{number} {state}")

    def _ip(self, namespace: str, command: str) -> None:
        run("ip", "-n", namespace, *command.split())


def mac(number: int) -> str:
    return f"02:00:00:00:00:{number:02x}"


def address(number: int) -> str:
    return f"{SUBNET}.{number}/24"


def remove(prefix: str) -> None:
    """Removes every namespace with this prefix."""
    for line in run("ip", "netns", "list").splitlines():
        name = line.split()[0]
        if name.startswith(prefix + "-"):
            run("ip", "netns", "delete", name)
