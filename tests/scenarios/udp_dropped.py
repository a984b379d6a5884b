"""A border drops UDP while bytes flow: TCP takes over within seconds, and QUIC comes back."""
# common cluster: base

bring_up("base")
crossing, beside = Traffic(mgmt01, "wiki"), Traffic(mgmt01, "metrics")
held = Held(raishan, "outline")
PORT, URSULA = "4610", "10.77.0.3"
CALLERS = (mgmt01, raishan)
for host in (ursula, *CALLERS):
    host.succeed("nft add table inet border", "nft add chain inet border in '{ type filter hook input priority -200; }'")


def drop():
    """Nothing of UDP gets to ursula's forwarder, or from it: who sends does not notice."""
    ursula.succeed(f"nft add rule inet border in iifname != lo udp dport {PORT} drop")
    for host in CALLERS:
        host.succeed(f"nft add rule inet border in ip saddr {URSULA} udp sport {PORT} drop")


def allow():
    for host in (ursula, *CALLERS):
        host.succeed("nft flush table inet border")


def status(host):
    return json.loads(host.succeed("flor status --json"))


def over(host, service):
    """What connections to a service go over."""
    return {c["transport"] for c in status(host)["peerConnections"] if c["target"].endswith(f"/{service}") and c["streams"] > 0}


def fallbacks(host):
    return status(host).get("fallbacks", [])


def took_over(host):
    wait_until(lambda: fallbacks(host), lambda: f"{host.name} goes over TCP: {status(host)['peerConnections']}")


with subtest("all goes over QUIC"):
    for host, service in ((mgmt01, "wiki"), (raishan, "outline")):
        wait_until(lambda: over(host, service) == {"quic"}, lambda: f"{service} goes over {over(host, service)}")
        assert not fallbacks(host), fallbacks(host)

with subtest("UDP is dropped: seconds later requests go over TCP"):
    drop()
    dropped = seconds_of(mgmt01)
    took_over(mgmt01)
    before = crossing.so_far()["requests"]
    wait_until(lambda: crossing.so_far()["requests"] > before + 20, lambda: f"requests go on: {crossing.so_far()}")
    late = [f for f in crossing.so_far()["failed"] if f[0] > dropped + 6]  # 2 where hosts do not share processors
    assert not late, (dropped, late)
    print(f"       {fallbacks(mgmt01)[0]['reason']}; {len(crossing.so_far()['failed'])} requests under way failed")

with subtest("flor status and flor doctor show it"):
    assert "over TCP: " in mgmt01.succeed("flor status")
    code, found = mgmt01.execute("flor doctor")
    assert code != 0 and f"let UDP port {PORT} in there" in found, found

with subtest("UDP is allowed: requests go over QUIC again, and none fails"):
    failed = len(crossing.so_far()["failed"])
    allow()
    wait_until(lambda: not fallbacks(mgmt01), lambda: f"mgmt01 goes over QUIC: {fallbacks(mgmt01)}")
    wait_until(lambda: over(mgmt01, "wiki") <= {"quic"}, lambda: f"wiki goes over {over(mgmt01, 'wiki')}")
    assert len(crossing.so_far()["failed"]) == failed, crossing.so_far()["failed"]

with subtest("a connection that was open rides out eight seconds without UDP"):
    held.end()
    wait_until(lambda: not fallbacks(raishan), lambda: f"raishan goes over QUIC: {fallbacks(raishan)}")
    held = Held(raishan, "outline")
    wait_until(lambda: over(raishan, "outline") == {"quic"}, lambda: f"outline goes over {over(raishan, 'outline')}")
    until = time.monotonic() + 8
    drop()
    time.sleep(max(0, until - time.monotonic()))
    allow()
    before = held.so_far()["requests"]
    wait_until(lambda: held.so_far()["requests"] > before + 5, lambda: f"the connection goes on: {held.so_far()}")
    assert not held.so_far()["error"], held.so_far()
    print(f"       slowest answer {held.so_far()['longest']:.1f} s")

with subtest("a host that starts without UDP goes over TCP from the first request"):
    drop()
    raishan.succeed("systemctl restart florete-agent")
    wait_reaches(raishan, "outline")
    took_over(raishan)

with subtest("a forwarder that is started again fails no request over TCP"):
    took_over(mgmt01)
    wait_until(lambda: over(mgmt01, "wiki") <= {"tcp"}, lambda: f"wiki goes over {over(mgmt01, 'wiki')}")
    failed = len(crossing.so_far()["failed"])
    ursula.succeed("systemctl restart florete-agent")
    before = crossing.so_far()["requests"]
    wait_until(lambda: crossing.so_far()["requests"] > before + 20, lambda: f"requests go on: {crossing.so_far()}")
    assert len(crossing.so_far()["failed"]) == failed, crossing.so_far()["failed"]
    allow()

with subtest("nothing else ever failed"):
    result = beside.end()
    assert not result["failed"], result
    print(f"       {result['requests']} requests beside the border, none failed")

crossing.end()
held.end()
for host in (ursula, *CALLERS):
    host.succeed("nft delete table inet border")
