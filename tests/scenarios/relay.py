"""A host that takes no connection is reached through a relay, which learns no name of a service."""

PORT, URSULA, RAISHAN = "4610", "10.77.0.3", "10.77.0.2"

for host in machines:
    host.start(allow_reboot=True)
# As behind the NAT of a provider: what ursula has not begun does not get in.
ursula.succeed(
    "nft add table inet border",
    "nft add chain inet border in '{ type filter hook input priority -200; }'",
    f"nft add rule inet border in iifname != lo udp dport {PORT} ct state new drop",
    f"nft add rule inet border in iifname != lo tcp dport {PORT} ct state new drop",
)
bring_up("relayed")


def status(host):
    return json.loads(host.succeed("flor status --json"))


def uplinks():
    """What ursula's uplinks go over."""
    return [u.get("transport") for u in status(ursula).get("uplinks", [])]


def forwarders(host, service):
    """Through what a host reaches a service now."""
    return {c["remote"] for c in status(host)["peerConnections"] if c["target"].endswith(f"/{service}") and c["direction"] == "out"}


with subtest("wiki is reached through raishan, and from raishan itself"):
    # While a relay takes long to answer, an uplink goes over TCP.
    wait_until(lambda: uplinks() == ["quic"], lambda: f"the uplink goes over QUIC: {uplinks()}")
    assert forwarders(mgmt01, "wiki") == {"by raishan"}, forwarders(mgmt01, "wiki")
    wait_reaches(raishan, "outline")
    assert "UPLINK TO" in ursula.succeed("flor status")
    ursula.succeed("flor doctor | grep -F agent")

with subtest("nobody has the address of ursula, and raishan no name of a service to carry"):
    for host in (drhorrible, raishan, mgmt01, laptop):
        assert URSULA not in json.dumps(manifest(host)["forwarder"]), host.name
    relay = json.dumps(manifest(raishan)["forwarder"]["relay"])
    assert "node/ursula" in relay and "service/" not in relay and "user/" not in relay, relay

with subtest("a new forwarder of the relay takes over: no request fails, and an open connection goes on"):
    traffic, held = Traffic(mgmt01, "wiki"), Held(mgmt01, "outline")
    time.sleep(1)
    raishan.succeed("systemctl reload florete-agent")
    before, answered = traffic.so_far()["requests"], held.so_far()["requests"]
    wait_until(lambda: traffic.so_far()["requests"] > before + 20, lambda: f"requests go on: {traffic.so_far()}")
    wait_until(lambda: held.so_far()["requests"] > answered + 5, lambda: f"the connection goes on: {held.so_far()}")
    assert not held.so_far()["error"], held.so_far()
    assert not traffic.so_far()["failed"], traffic.so_far()["failed"]

with subtest("the relay's forwarder is killed: requests go on when it runs again"):
    raishan.succeed("systemctl kill --signal=KILL florete-agent")
    killed = time.monotonic()
    wait_reaches(mgmt01, "wiki")
    print(f"       after {time.monotonic() - killed:.1f} s")
    held.end()

with subtest("UDP between ursula and the relay is dropped: the uplink goes over TCP, and back"):
    for host, other in ((ursula, RAISHAN), (raishan, URSULA)):
        host.succeed("nft add table inet cut", "nft add chain inet cut in '{ type filter hook input priority -200; }'",
                     f"nft add rule inet cut in ip saddr {other} meta l4proto udp drop")
    dropped = time.monotonic()
    wait_until(lambda: uplinks() == ["tcp"], lambda: f"the uplink goes over TCP: {uplinks()}")
    wait_reaches(mgmt01, "wiki")
    print(f"       after {time.monotonic() - dropped:.1f} s")
    for host in (ursula, raishan):
        host.succeed("nft delete table inet cut")
    wait_until(lambda: uplinks() == ["quic"], lambda: f"the uplink goes over QUIC: {uplinks()}")
    wait_reaches(mgmt01, "wiki")

traffic.end()
