"""A host whose clock jumps is told so, loses nothing, and recovers as soon as its clock does; its doctor knows a kernel that is too small, too."""
# minutes: 3
# own kernel: ursula

HOUR, DAY = 3600, 86400
RENEWED = ["cert-node", "cert-service-outline", "cert-service-wiki", "config-documents"]
AT_ONCE = 50  # seconds, on a busy machine; activation alone would look at the clock within a minute

ursula.start(allow_reboot=True)  # before those who would wait for it
ursula.wait_for_unit("multi-user.target")
bring_up("base")
ursula.succeed("systemctl stop systemd-timesyncd.service")
drhorrible.succeed(f"systemd-run --quiet --unit=ntp {PROGRAMS}/ntp.py")
secret = ursula.succeed(f"sha256sum {STATE}/needs/oidc-outline/current/*")


def jump(by):
    ursula.succeed(f"date --set=@$(( $(date +%s) + {by} ))")


def ahead():
    """How much ursula's clock is ahead, in seconds."""
    return seconds_of(ursula) - seconds_of(drhorrible)


def findings(name):
    report = json.loads(ursula.execute("flor doctor --json")[1])
    return next(check["findings"] for check in report["checks"] if check["name"] == name)


def wait_told():
    """Until activation has failed for the clock, by itself."""
    wait_until(lambda: (needs(ursula)["cert-node"].get("error") or {}).get("code") == "clock", lambda: f"ursula is told: {needs(ursula)}", AT_ONCE)
    error = needs(ursula)["cert-node"]["error"]
    assert error["kind"] == "transient", error
    print(f"       {error['message']}")


def answers():
    """How many answers activation has recorded for each need that is renewed."""
    found = needs(ursula)
    return [found[need]["answers"] for need in RENEWED]


def wait_renewed(before):
    wait_until(lambda: all(n > b for n, b in zip(answers(), before, strict=True)), lambda: f"ursula renews: {needs(ursula)}", AT_ONCE)


def recovers():
    """Nothing was lost, no wait is left over, and the services work."""
    began = time.monotonic()
    wait_fulfilled([ursula], AT_ONCE)
    wait_reaches(ursula, "metrics", AT_ONCE)
    wait_reaches(mgmt01, "wiki", AT_ONCE)
    print(f"       all is well after {time.monotonic() - began:.1f} s")
    found = json.loads(ursula.succeed(f"{PROGRAMS}/whole.py"))
    assert not found["broken"] and not found["missing"], found
    assert ursula.succeed(f"sha256sum {STATE}/needs/oidc-outline/current/*") == secret, "credentials have changed"


with subtest("three days ahead: to itself its certificates have run out, and it says that this is for the clock"):
    jump(3 * DAY)
    wait_until(lambda: not reaches(ursula, "metrics"), lambda: "ursula is refused")
    wait_told()

with subtest("flor doctor finds it, and the command that it names sets the clock"):
    found = findings("clock")
    assert found and abs(ahead() - 3 * DAY) < 60, found
    print(f"       {found[0]['problem']}: {found[0]['fix']}")
    ursula.succeed(found[0]["fix"])
    wait_until(lambda: abs(ahead()) < 2, lambda: f"the clock is right: {ahead():.0f} s ahead")
    recovers()
    assert not findings("clock"), findings("clock")
    ursula.succeed("systemctl stop systemd-timesyncd.service")

with subtest("a start with the clock a year back: certificates are not valid yet, flor doctor says so; then they are, and are renewed"):
    before = answers()
    jump(-365 * DAY)
    wait_until(lambda: not reaches(ursula, "metrics"), lambda: "ursula is refused")
    ursula.succeed("systemctl restart florete-agent.service florete-activate.service")
    found = findings("clock")
    assert any("begins" in f["problem"] for f in found), found
    print(f"       {found[-1]['problem']}")
    jump(365 * DAY)
    recovers()
    wait_renewed(before)  # activation cannot know which clock was right

with subtest("asleep for sixteen hours, in which renewals fell due: they come at waking"):
    before = answers()
    freezer = "/sys/fs/cgroup/system.slice/florete-activate.service/cgroup.freeze"
    ursula.succeed(f"echo 1 > {freezer}")
    jump(16 * HOUR)
    ursula.succeed(f"echo 0 > {freezer}")
    wait_renewed(before)
    recovers()

with subtest("sixteen hours back: what was renewed meanwhile is good, and nothing is asked for"):
    before = answers()
    asked = decisions()
    jump(-16 * HOUR)
    recovers()
    assert before == answers(), (before, needs(ursula))
    assert decisions() == asked, decisions() - asked

with subtest("UDP buffers too small for QUIC: flor doctor finds them, and its commands make them larger"):
    ursula.succeed("sysctl -w net.core.rmem_max=212992 net.core.wmem_max=212992")
    found = findings("kernel")
    assert len(found) == 2, found
    for finding in found:
        print(f"       {finding['problem']}: {finding['fix']}")
        ursula.succeed(finding["fix"])
    assert not findings("kernel"), findings("kernel")
