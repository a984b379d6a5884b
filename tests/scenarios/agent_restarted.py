"""The forwarder of a busy service's host is started again, and killed: no new connection fails, and who waits learns of it."""
# common cluster: base

bring_up("base")
traffic = Traffic(mgmt01, "outline", "wiki")


def hold():
    """A connection of its own, which ends with its first error."""
    mgmt01.succeed("rm -f /run/held-wiki.json")
    return Held(mgmt01, "wiki")


with subtest("started again while a connection stays open, it fails none"):
    for _ in range(3):
        held = hold()
        before = traffic.so_far()
        ursula.succeed("systemctl restart florete-agent")
        wait_until(lambda: traffic.so_far()["requests"] >= before["requests"] + 40, lambda: f"requests go on: {traffic.so_far()}")
        assert not traffic.so_far()["failed"], traffic.so_far()
    print(f"       {traffic.so_far()['requests']} requests, none failed; the slowest took {traffic.so_far()['longest']:.1f} s")

with subtest("killed, it is there again, and only requests that it had begun fail"):
    resets = []
    for _ in range(3):
        held = hold()
        before = traffic.so_far()
        killed = seconds_of(ursula)
        ursula.succeed("systemctl kill --signal=KILL florete-agent")
        wait_until(lambda: held.so_far()["error"], lambda: f"the connection is reset: {held.so_far()}")
        resets.append(held.so_far()["ended"] - killed)
        print(f"       reset after {resets[-1]:.1f} s, the slowest answer took {held.so_far()['longest']:.1f} s")
        wait_until(lambda: traffic.so_far()["requests"] >= before["requests"] + 40, lambda: f"requests go on: {traffic.so_far()}")
        assert len(traffic.so_far()["failed"]) <= len(before["failed"]) + 2, traffic.so_far()
    assert max(resets) < 14, resets  # QUIC's own limit is 15
    held.end()
    result = traffic.end()
    print(f"       {result['requests']} requests, failed: {[what for _, what in result['failed']]}")
