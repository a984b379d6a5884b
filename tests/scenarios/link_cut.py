"""A link is cut and healed with traffic running: only what crosses it suffers, and it recovers."""
# common cluster: base

bring_up("base")
crossing, beside = Traffic(mgmt01, "wiki"), Traffic(mgmt01, "metrics")
held = Held(raishan, "outline")

with subtest("a connection that is open rides out a cut of three seconds"):
    time.sleep(1)
    ursula.block()
    time.sleep(3)
    ursula.unblock()
    before = held.so_far()["requests"]
    wait_until(lambda: held.so_far()["requests"] > before + 5, lambda: f"the connection goes on: {held.so_far()}")
    assert not held.so_far()["error"], held.so_far()
    print(f"       slowest answer {held.so_far()['longest']:.1f} s")

with subtest("a cut that lasts: requests across it fail, they do not hang"):
    ursula.block()
    failed = len(crossing.so_far()["failed"])
    wait_until(lambda: len(crossing.so_far()["failed"]) > failed, lambda: f"requests fail: {crossing.so_far()}")
    why = [what for _, what in crossing.so_far()["failed"]]
    assert not any("timed out" in what for what in why), why  # that would be the caller's own patience
    print(f"       {why[-1]}")

with subtest("healed, requests succeed again by themselves within ten seconds"):
    ursula.unblock()
    healed = seconds_of(mgmt01)
    time.sleep(10)
    before = crossing.so_far()["requests"]
    wait_until(lambda: crossing.so_far()["requests"] > before + 20, lambda: f"requests go on: {crossing.so_far()}")
    late = [f for f in crossing.so_far()["failed"] if f[0] > healed + 10]
    assert not late, late
    wait_reaches(raishan, "outline")

with subtest("a cut between two hosts concerns these two alone"):
    mgmt01.succeed("ip route add blackhole 10.77.0.3/32")
    wait_until(lambda: not reaches(mgmt01, "wiki"), lambda: "the pair is cut")
    assert reaches(raishan, "outline") and reaches(laptop, "metrics")
    mgmt01.succeed("ip route del blackhole 10.77.0.3/32")
    wait_reaches(mgmt01, "wiki")

with subtest("nothing else ever failed"):
    result = beside.end()
    assert not result["failed"], result
    print(f"       {result['requests']} requests beside the cut, none failed")

crossing.end()
held.end()
