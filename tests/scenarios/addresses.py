"""What is called is not what is listened on: behind a NAT, in two networks, at an address that no host has, and by a name that leads a host to itself."""

HOME = ["10.88.0.1", "10.88.0.3"]  # raishan, ursula
CLOUD = "203.0.113.1"
for host in machines:
    host.start()

raishan.succeed(
    f"ip addr add {HOME[0]}/24 dev eth1",
    "sysctl -qw net.ipv4.ip_forward=1 net.ipv4.conf.all.send_redirects=0 net.ipv4.conf.eth1.send_redirects=0",
    "nft add table ip nat",
    "nft add chain ip nat before '{ type nat hook prerouting priority -100; }'",
    "nft add chain ip nat own '{ type nat hook output priority -100; }'",
    "nft add chain ip nat after '{ type nat hook postrouting priority 100; }'",
    f"nft add rule ip nat before ip daddr 10.77.0.2 udp dport 14610 counter dnat to {HOME[1]}:4610",
    f"nft add rule ip nat before ip daddr {CLOUD} dnat to 10.77.0.1",
    f"nft add rule ip nat own ip daddr {CLOUD} dnat to 10.77.0.1",
    "nft add rule ip nat after ip saddr 10.88.0.0/24 ip daddr 10.77.0.0/24 masquerade",
    "nft add rule ip nat after ip daddr 10.77.0.1 masquerade",
)
# Who calls it hears nothing.
raishan.succeed("ip route add blackhole 203.0.113.9", f"ip route add {CLOUD} via 10.77.0.1")
ursula.succeed(f"ip addr add {HOME[1]}/24 dev eth1", "ip addr del 10.77.0.3/24 dev eth1", f"ip route add default via {HOME[0]}")
for host in (mgmt01, laptop):
    host.succeed("ip route add 203.0.113.0/24 via 10.77.0.2")
for host in machines:
    host.succeed(f"echo {'127.0.1.1' if host is mgmt01 else '10.77.0.4'} mgmt01.example.org >> /etc/hosts")

bring_up("addresses")


def forwarded():
    """Packets that raishan let in for ursula. The kernel counts the first of each flow."""
    return int(raishan.succeed("nft list chain ip nat before").split("counter packets ")[1].split()[0])


with subtest("from elsewhere ursula is reached through the NAT that she is behind"):
    assert forwarded() > 0
    assert not reaches(laptop, "wiki") and manifest(laptop)["forwarder"]["reach"]  # root is not alice
    wait_until(lambda: laptop.execute("runuser -u alice -- curl --silent --fail --max-time 5 http://wiki.demo.flor.rete/")[1] == "wiki\n", lambda: "alice reaches wiki")

with subtest("at home she is reached at home"):
    before = forwarded()
    wait_reaches(raishan, "outline")
    assert forwarded() == before
    print(f"       {[r['endpoints'] for r in manifest(raishan)['forwarder']['reach'] if r['id'].endswith('/outline')]}")

with subtest("she calls others, and the provider, from there"):
    wait_reaches(ursula, "metrics")
    assert fulfilled(ursula)

with subtest("a name that leads mgmt01 to itself decides nothing about what it listens on"):
    for host in (raishan, laptop, mgmt01, drhorrible):
        wait_reaches(host, "metrics")

with subtest("nobody finds fault with it"):
    for host in machines:
        found = [f for c in json.loads(host.execute("flor doctor --json")[1])["checks"] if c["name"] in ("providers", "forwarders") for f in c["findings"]]
        assert not found, f"{host.name}: {found}"
