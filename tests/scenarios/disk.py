"""A full disk and a read-only disk stop nothing that works, lose nothing, and are named."""

bring_up("brief")


def small(host, unit, at, size):
    """Moves a state directory to a file system of its own, that can be filled."""
    host.succeed(
        f"systemctl stop {unit}", f"cp -a {at} /run/moved", f"mount -t tmpfs -o size={size} small {at}",
        f"cp -a /run/moved/. {at}", "rm -r /run/moved", f"systemctl start {unit}",
    )


def fill(host, at):
    host.execute(f"cat /dev/zero > {at}/filled 2>/dev/null")


def whole(host):
    """All that was delivered is there, and whole."""
    found = json.loads(host.succeed(f"{PROGRAMS}/whole.py"))
    assert not found["broken"] and not found["missing"], found


def certificates(host):
    return [serial(host, need) for need in ("cert-node", "cert-service-wiki", "cert-service-outline")]


def errors(host):
    return [need["error"] for need in needs(host).values() if need.get("error")]


with subtest("full: what is in force stays whole, and the reason is told"):
    small(ursula, "florete-activate.service", STATE, "2m")
    wait_fulfilled([ursula])
    fill(ursula, STATE)
    ursula.wait_until_succeeds("journalctl --unit florete-activate.service | grep -i 'no space left'")
    fill(ursula, STATE)  # also what was freed on the way
    before = certificates(ursula)
    time.sleep(3)
    whole(ursula)
    assert certificates(ursula) == before, (certificates(ursula), before)
    print("       " + ursula.succeed("journalctl --output=cat --unit florete-activate.service | grep -i 'no space left' | head -n 1").strip()[:180])

with subtest("full at one write after the other, as space comes back page by page: whole all the time"):
    for _ in range(12):
        ursula.succeed(f"truncate --size=-4096 {STATE}/filled", "systemctl restart --no-block florete-activate.service")
        time.sleep(0.7)
        whole(ursula)

with subtest("space again: renewed by itself, and reachable"):
    ursula.succeed(f"rm {STATE}/filled")
    wait_until(lambda: all(a != b for a, b in zip(certificates(ursula), before, strict=True)), lambda: f"ursula renews: {needs(ursula)}")
    wait_reaches(mgmt01, "wiki")

with subtest("read-only: activation says so, what is in force stays whole, the forwarder goes on"):
    ursula.succeed("systemctl stop florete-activate.service", f"mount -o remount,ro {STATE}")
    ursula.succeed("systemctl start --no-block florete-activate.service")
    ursula.wait_until_succeeds("journalctl --unit florete-activate.service | grep -i 'read-only'")
    whole(ursula)
    print("       " + ursula.succeed("journalctl --output=cat --unit florete-activate.service | grep -i 'read-only' | head -n 1").strip()[:180])

with subtest("writable again: activation comes back by itself"):
    ursula.succeed(f"mount -o remount,rw {STATE}")
    ursula.wait_until_succeeds("systemctl is-active florete-activate.service")
    wait_fulfilled([ursula])
    wait_reaches(mgmt01, "wiki")

with subtest("the provider's disk is full: hosts are told to come back, and do"):
    small(drhorrible, "florete-provider-cert.service", "/var/lib/private/florete-provider/cert", "4m")
    wait_fulfilled([ursula])
    fill(drhorrible, f"{PROVIDER}/cert")
    # Which certificate runs into it first depends on when each is renewed.
    found = []
    wait_until(lambda: found.extend(errors(ursula)) or found, lambda: f"ursula is told: {needs(ursula)}")
    error = found[0]
    assert error["kind"] == "transient", error
    print(f"       {error['message'][:180]}")
    drhorrible.succeed(f"rm {PROVIDER}/cert/filled")
    wait_fulfilled()
    wait_reaches(mgmt01, "wiki")
