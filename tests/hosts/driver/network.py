"""The network of a run: a namespace that is the switch, and one for each host.
Nothing touches the machine's own."""

from .command import run

SUBNET = "10.77.0"


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
        self._ip(namespace, f"link add eth1 address 02:00:00:00:00:{number:02x} type veth peer name v{number} netns {self.switch}")
        self._ip(self.switch, f"link set v{number} master br0 up")
        self._ip(namespace, f"addr add {SUBNET}.{number}/24 dev eth1")
        self._ip(namespace, "link set eth1 up")
        return namespace

    def link(self, number: int, state: str) -> None:
        """Sets a host's link up or down, at the switch."""
        self._ip(self.switch, f"link set v{number} {state}")

    def _ip(self, namespace: str, command: str) -> None:
        run("ip", "-n", namespace, *command.split())


def remove(prefix: str) -> None:
    """Removes every namespace with this prefix."""
    for line in run("ip", "netns", "list").splitlines():
        name = line.split()[0]
        if name.startswith(prefix + "-"):
            run("ip", "netns", "delete", name)
