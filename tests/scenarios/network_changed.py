"""A laptop gets another address while a connection is used, after seconds without any: the connection goes on over QUIC, and so does what is new."""
# common cluster: base

bring_up("base")
held = Held(laptop, "metrics")
there = laptop.succeed("ip -4 -o address show dev eth1").split()[3]
elsewhere = "10.77.0.99/24"


def move(old, new, pause):
    laptop.succeed(f"ip address del {old} dev eth1")
    time.sleep(pause)
    laptop.succeed(f"ip address add {new} dev eth1")


def goes_on():
    before = held.so_far()["requests"]
    wait_until(lambda: held.so_far()["requests"] > before + 20, lambda: f"the connection goes on: {held.so_far()}")
    assert not held.so_far()["error"], held.so_far()


def over():
    status = json.loads(laptop.succeed("flor status --json"))
    return {c["transport"] for c in status["peerConnections"] if c["target"].endswith("/metrics") and c["streams"] > 0}


with subtest("the connection goes on from another address, after three seconds without one"):
    goes_on()
    move(there, elsewhere, pause=3)
    goes_on()
    assert "quic" in over(), over()
    print(f"       slowest answer {held.so_far()['longest']:.1f} s")

with subtest("new connections come from there"):
    wait_reaches(laptop, "metrics")

with subtest("and back, without a pause"):
    move(elsewhere, there, pause=0)
    goes_on()
    wait_reaches(laptop, "metrics")
    result = held.end()
    print(f"       {result['requests']} requests over one connection, slowest answer {result['longest']:.1f} s")
