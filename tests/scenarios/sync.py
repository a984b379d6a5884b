"""Documents that cut a host off go back by themselves, after a loss of power too; good ones are confirmed, by the host or from a new login, and stay."""
# minutes: 4
# systemd: the unit that goes back, login sessions

OLD_LOGIN = """
touch /run/old-login
until [ -s /run/id ]; do sleep 0.1; done
flor sync --confirm "$(cat /run/id)" > /run/answer 2>&1
echo $? > /run/code
"""


# Stands for a process that hangs while it changes documents.
HANG = """
import fcntl, time
lock = open("/var/lib/florete/documents.lock", "r+")
fcntl.lockf(lock, fcntl.LOCK_EX)
open("/run/locked", "w").close()
time.sleep(3600)
"""


def version(host):
    """Of the manifest in force."""
    return json.loads(host.succeed(f"cat {STATE}/documents/current/manifest.envelope.json"))["serial"]


def pending(host):
    return host.execute(f"test -e {STATE}/change.json")[0] == 0


def sync(host, timeout):
    return json.loads(host.succeed(f"flor sync --json --confirm-timeout {timeout}s"))["change"]


def login(name, command):
    """A command line in a login session, as systemd-logind makes one for SSH."""
    return f"systemd-run --quiet --scope --unit=session-{name}.scope {command}"


def hold(lasts, *hosts):
    """What is published comes in force there by flor sync alone, and activation goes on."""
    for host in hosts:
        host.succeed(f"flor sync --hold {lasts}")


def give(host, seconds):
    """How long documents that activation takes may be in force without a provider's answer."""
    dropin = "/run/systemd/system/florete-activate.service.d"
    host.succeed(
        f"mkdir -p {dropin}; {{ echo [Service]; echo ExecStart=; systemctl cat florete-activate.service"
        f" | awk '/^ExecStart=./ && !n++ {{print $0 \" --confirm-timeout={seconds}s\"}}'; }} > /run/dropin; mv /run/dropin {dropin}/50-quick.conf",
        "systemctl daemon-reload; systemctl restart florete-activate.service",
    )


def undone(host):
    """What went back there, by its last report."""
    reports = {h["host"]: h["report"] for h in json.loads(drhorrible.succeed("flor-provider control GET /v1/hosts"))["hosts"]}
    return reports[host.name].get("undone", {}).get("id")


bring_up("base")
base = version(mgmt01)
hold("1h", drhorrible, ursula, raishan, laptop)
give(mgmt01, 40)  # all that is asked below is asked within it, on a busy machine too

with subtest("documents that cut the host off are published: it goes back by itself, though others hang"):
    publish("unreachable")
    began = time.monotonic()
    wait_until(lambda: pending(mgmt01) and version(mgmt01) > base, lambda: "mgmt01 has them")
    change = json.loads(mgmt01.succeed(f"cat {STATE}/change.json"))
    wait_until(lambda: not reaches(mgmt01, "wiki"), lambda: "mgmt01 is cut off")
    status = mgmt01.succeed("flor status")
    assert f"pending: change {change['id']}" in status and "unless a provider answers by then" in status, status
    code, out = mgmt01.execute("flor sync 2>&1")
    assert code == 1 and f"change {change['id']}" in out and "is pending" in out, out
    mgmt01.succeed(f"cat > /run/hang.py <<'END'\n{HANG}END", "systemd-run --quiet --collect --unit=hang python3 /run/hang.py")
    mgmt01.wait_for_file("/run/locked")
    wait_until(lambda: version(mgmt01) == base, lambda: "it has gone back")
    wait_reaches(mgmt01, "wiki")
    print(f"       cut off and back within {time.monotonic() - began:.0f} s, of which 40 were given and 10 left to who hung")

if newest:
    with subtest("it is not put in force again, and status, doctor and its report have that"):
        wait_until(lambda: undone(mgmt01) == change["id"], lambda: "mgmt01 reports it")
        answers = needs(mgmt01)["config-documents"]["answers"]
        mgmt01.succeed("flor refetch config-documents")
        wait_until(lambda: needs(mgmt01)["config-documents"]["answers"] > answers, lambda: "mgmt01 has polled")
        out = mgmt01.succeed("flor sync")
        assert version(mgmt01) == base and "which went back" in out, out
        assert f"undone: change {change['id']}" in mgmt01.succeed("flor status")
        assert f"change {change['id']}" in mgmt01.execute("flor doctor")[1]
        code, out = mgmt01.execute(f"flor sync --confirm {change['id']} 2>&1")
        assert code == 1 and "has gone back, for no provider answered under it" in out, out

    with subtest("where an operator has them wait, a dry run prints what would change, and changes nothing"):
        out = laptop.succeed("flor sync --dry-run")
        assert "203.0.113.1" in out and version(laptop) == base and not pending(laptop), out
        print("       " + out.strip().replace("\n", "\n       "))

    with subtest("--confirm-when-healthy of the same ends with 2, and the documents before"):
        code, out = laptop.execute("flor sync --confirm-when-healthy --confirm-timeout 10s 2>&1")
        assert code == 2 and version(laptop) == base, (code, out)
        print(f"       {out.strip().splitlines()[-1]}")

with subtest("power is lost while it is pending: armed again, it goes back after the boot"):
    give(mgmt01, 90)  # the boot is within it
    publish("unreachable-still")
    wait_until(lambda: pending(mgmt01) and version(mgmt01) > base, lambda: "mgmt01 has them")
    mgmt01.crash()
    mgmt01.start(allow_reboot=True)
    mgmt01.wait_for_unit("florete-rollback.service")
    assert version(mgmt01) > base and pending(mgmt01) and not reaches(mgmt01, "wiki")
    wait_until(lambda: version(mgmt01) == base, lambda: "it has gone back")
    wait_reaches(mgmt01, "wiki")

with subtest("power is lost until after the deadline: it goes back at boot"):
    mgmt01.succeed("flor sync --hold 1h")
    publish("reachable")
    sync(laptop, 20)  # what goes back is started within it, on a busy machine too
    laptop.crash()
    time.sleep(21)
    laptop.start(allow_reboot=True)
    wait_until(lambda: version(laptop) == base and not pending(laptop), lambda: "it has gone back")

with subtest("what is good cannot be confirmed from a login that was there before"):
    mgmt01.succeed("flor sync --dry-run")
    assert version(mgmt01) == base and not pending(mgmt01)
    mgmt01.succeed(f"cat > /run/old <<'END'\n{OLD_LOGIN}END")
    mgmt01.succeed(f"systemd-run --quiet --collect --unit=old-login {login('old', 'sh /run/old')}")
    mgmt01.wait_for_file("/run/old-login")
    change = {"id": mgmt01.succeed("flor sync --confirm-timeout 60s").split()[-1]}
    mgmt01.succeed(f"echo {change['id']} > /run/id")
    mgmt01.wait_for_file("/run/code")
    out = mgmt01.succeed("cat /run/answer")
    assert mgmt01.succeed("cat /run/code") == "1\n" and "login session-old began before the change" in out, out
    print(f"       {out.strip()}")

with subtest("from a new one it can, and it stays"):
    mgmt01.succeed(login("new", f"flor sync --confirm {change['id']}"))
    assert not pending(mgmt01)
    mgmt01.wait_until_fails("systemctl is-active florete-rollback.service")
    mgmt01.reboot()
    mgmt01.wait_for_unit("florete-activate.service")
    assert version(mgmt01) > base and not pending(mgmt01)
    wait_reaches(mgmt01, "wiki")

if newest:
    with subtest("where nobody holds it, it is confirmed by itself within seconds, on the provider's own host too"):
        hold("0s", drhorrible, ursula)
        began = time.monotonic()
        for host in (drhorrible, ursula):
            host.succeed("flor refetch config-documents")
            wait_until(lambda: version(host) > base and not pending(host), lambda: f"{host.name} has confirmed it")
        log = drhorrible.succeed("journalctl --no-pager --unit=florete-activate.service")  # of ursula only the version changes
        assert "is confirmed: provider drhorrible answers under it" in log, log
        print(f"       confirmed after {time.monotonic() - began:.0f} s, of which up to 10 are until it is requested")

    with subtest("--confirm-when-healthy of the same confirms it, new needs fulfilled"):
        began = time.monotonic()
        raishan.succeed("flor sync --confirm-when-healthy --confirm-timeout 100s")
        assert version(raishan) > base and not pending(raishan)
        raishan.succeed(f"test -e {STATE}/needs/cert-service-news/current/svid.pem")
        print(f"       confirmed after {time.monotonic() - began:.0f} s")
