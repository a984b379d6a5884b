"""Losses of power at random moments of activation and rotation leave nothing half written."""
# minutes: 2
import random

ROUNDS = 16  # Go tests kill activation before each of its steps; here hosts boot after it
victims = [raishan, ursula, mgmt01, laptop]

bring_up("brief")


# What was there goes in one step, so that activation begins with nothing.
FROM_NOTHING = f"mv {STATE}/needs {STATE}/former; rm -r {STATE}/former; systemctl restart --no-block florete-activate.service"
# Holds activation still some moment after a request went out, or after eight
# seconds: the loss of power that follows finds it there, however late it comes.
HOLD = """
import glob, time
end = time.time() + 8
while time.time() < end and not glob.glob("/var/lib/florete/needs/*/pending.json"):
    time.sleep(0.001)
time.sleep({delay})
open("/sys/fs/cgroup/system.slice/florete-activate.service/cgroup.freeze", "w").write("1")
"""


def lose_power(round):
    """Crashes a host in an activation that begins with nothing, or in a rotation;
    returns what it found on its disk at the next boot."""
    host, delay = victims[round % len(victims)], delays[round]
    if round % 8 < 4:
        host.succeed(FROM_NOTHING)
    host.succeed(f"python3 -c '{HOLD.format(delay=delay)}'")
    host.crash()
    host.start(allow_reboot=True)
    host.wait_for_unit("whole.service")
    return json.loads(host.succeed("cat /run/whole.json")) | {"round": round, "host": host.name, "delay": delay}


delays = [random.uniform(0, 0.05) for _ in range(ROUNDS)]
with subtest(f"{ROUNDS} losses of power: whatever is in force is whole at the next boot"):
    found = []
    for results in everywhere(lambda victim: [lose_power(round) for round in range(victims.index(victim), ROUNDS, len(victims))], victims):
        found += results
    assert len(found) == ROUNDS and not any(f["broken"] for f in found), [f for f in found if f["broken"]]

with subtest("they came in the middle of things"):
    begun = [f for f in found if f["unfinished"] or f["unanswered"]]
    print(f"       {len(begun)} left something unfinished: {sum(f['unfinished'] for f in found)} generations, {sum(f['unanswered'] for f in found)} requests without an answer")
    assert len(begun) >= ROUNDS / 10, found

with subtest("the provider lost power too, while hosts asked"):
    for _ in range(3):
        drhorrible.crash()
        drhorrible.start(allow_reboot=True)
        drhorrible.wait_for_unit("florete-provider-cert.service")
        time.sleep(random.uniform(0, 3))

with subtest("every host has what it needs, by itself, and the services work"):
    wait_fulfilled()
    wait_reaches(mgmt01, "wiki")
    wait_reaches(raishan, "outline")
