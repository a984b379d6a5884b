"""Losses of power that take along what was not flushed: what is in force is whole at the next boot."""
# minutes: 4
# own kernel: ursula
import random

LOSSES = 4
FROM_NOTHING = f"mv {STATE}/needs {STATE}/former; rm -r {STATE}/former; systemctl restart --no-block florete-activate.service"
RENEWAL = "date --set=@$(( $(date +%s) + 16 * 3600 ))"

ursula.start(allow_reboot=True)  # before those who would wait for it
ursula.wait_for_unit("multi-user.target")
bring_up("base")
ursula.succeed("sync")


def lose_power(round):
    """Ends ursula in the midst of deliveries, or soon after; returns what it found on
    its disk at the next boot. What was just written is lost, unless the kernel was quicker."""
    ursula.succeed(FROM_NOTHING if round % 2 else RENEWAL)
    time.sleep(random.uniform(0, 5))
    ursula.succeed("echo written > /var/tmp/unflushed")
    ursula.crash()
    ursula.start(allow_reboot=True)
    ursula.wait_for_unit("whole.service")
    flushed = ursula.execute("grep written /var/tmp/unflushed && rm /var/tmp/unflushed && sync")[0] == 0
    return json.loads(ursula.succeed("cat /run/whole.json")) | {"lost": not flushed}


with subtest(f"{LOSSES} losses of power, each of which lost a file that was just written"):
    found = []
    while sum(f["lost"] for f in found) < LOSSES:
        assert len(found) < 3 * LOSSES, f"most files were flushed, which shows nothing: {found}"
        found.append(lose_power(len(found)))
    broken = [f for f in found if f["broken"]]
    assert not broken, broken
    print(f"       left behind: {sum(f['unfinished'] for f in found)} unfinished generations, {sum(f['unanswered'] for f in found)} requests without an answer")

with subtest("ursula has what it needs, by itself, and the services work"):
    wait_fulfilled([ursula])
    wait_reaches(ursula, "metrics")
    wait_reaches(mgmt01, "wiki")
