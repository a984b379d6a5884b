"""Documents that cut a host off go back by themselves, after a loss of power too; good ones are confirmed from a new login and stay."""
# systemd: the unit that goes back, login sessions

OLD_LOGIN = """
touch /run/old-login
until [ -e /run/id ]; do sleep 0.1; done
flor sync --confirm "$(cat /run/id)" > /run/answer 2>&1
echo $? > /run/code
"""


# Stands for a process that hangs while it changes documents.
HANG = """
import fcntl, time
lock = open("/var/lib/florete/documents.lock", "r+")
fcntl.lockf(lock, fcntl.LOCK_EX)
open("/run/locked", "w").close()
time.sleep(600)
"""


def version(host):
    """Of the manifest in force."""
    return json.loads(host.succeed(f"cat {STATE}/documents/current/manifest.envelope.json"))["serial"]


def pending(host):
    return host.execute(f"test -e {STATE}/commit.json")[0] == 0


def sync(host, timeout):
    return json.loads(host.succeed(f"flor sync --json --commit-timeout {timeout}s"))["commit"]


def login(name, command):
    """A command line in a login session, as systemd-logind makes one for SSH."""
    return f"systemd-run --quiet --scope --unit=session-{name}.scope {command}"


def activation(verb, *hosts):
    """Where it runs, what is published is in force within seconds, and nothing is left for flor sync."""
    for host in hosts:
        host.succeed(f"systemctl {verb} florete-activate.service")


bring_up("base")
base = version(mgmt01)
activation("stop", drhorrible, ursula, raishan, laptop)
mgmt01.succeed("systemctl stop florete-activate.service")

with subtest("a dry run prints what would change, and changes nothing"):
    publish("unreachable")
    out = mgmt01.succeed("flor sync --dry-run")
    assert "203.0.113.1" in out and version(mgmt01) == base and not pending(mgmt01), out
    print("       " + out.strip().replace("\n", "\n       "))

with subtest("documents that cut the host off: it goes back by itself, though activation is stopped and others hang"):
    began = time.time()
    out = mgmt01.succeed("flor sync --commit-timeout 15s")
    commit = {"id": out.split()[-1]}
    assert version(mgmt01) > base and pending(mgmt01)
    wait_until(lambda: not reaches(mgmt01, "wiki"), lambda: "mgmt01 is cut off", 12)
    status = mgmt01.succeed("flor status")
    assert f"flor sync --confirm {commit['id']}" in status, status
    code, out = mgmt01.execute("flor sync 2>&1")
    assert code == 1 and f"commit {commit['id']}" in out and "is pending" in out, out
    mgmt01.succeed(f"cat > /run/hang.py <<'END'\n{HANG}END", "systemd-run --quiet --collect --unit=hang python3 /run/hang.py")
    mgmt01.wait_for_file("/run/locked")
    wait_until(lambda: version(mgmt01) == base, lambda: "it has gone back", 40)
    wait_reaches(mgmt01, "wiki")
    print(f"       cut off and back within {time.time() - began:.0f} s, of which 15 were given and 10 left to who hung")

with subtest("it is not put in force again, and status and doctor say so"):
    answers = needs(mgmt01)["config-documents"]["answers"]
    activation("start", mgmt01)
    mgmt01.succeed("flor refetch config-documents")
    wait_until(lambda: needs(mgmt01)["config-documents"]["answers"] > answers, lambda: "mgmt01 has polled", 60)
    out = mgmt01.succeed("flor sync")
    assert version(mgmt01) == base and "which went back" in out, out
    assert f"undone: commit {commit['id']}" in mgmt01.succeed("flor status")
    assert f"commit {commit['id']}" in mgmt01.execute("flor doctor")[1]
    code, out = mgmt01.execute(f"flor sync --confirm {commit['id']} 2>&1")
    assert code == 1 and "has gone back" in out, out

with subtest("--confirm-when-healthy of the same ends with 2, and the documents before"):
    code, out = laptop.execute("flor sync --confirm-when-healthy --commit-timeout 10s 2>&1")
    assert code == 2 and version(laptop) == base, (code, out)
    print(f"       {out.strip().splitlines()[-1]}")

with subtest("power is lost while it is pending: armed again, it goes back after the boot"):
    activation("stop", mgmt01)
    publish("unreachable-still")
    commit = sync(mgmt01, 40)
    mgmt01.crash()
    mgmt01.start(allow_reboot=True)
    mgmt01.wait_for_unit("florete-rollback.service")
    assert version(mgmt01) > base and pending(mgmt01) and not reaches(mgmt01, "wiki")
    wait_until(lambda: version(mgmt01) == base, lambda: "it has gone back", 60)
    wait_reaches(mgmt01, "wiki")

with subtest("power is lost until after the deadline: it goes back at boot"):
    activation("stop", mgmt01)
    publish("reachable")
    sync(laptop, 2)
    laptop.crash()
    time.sleep(3)
    laptop.start(allow_reboot=True)
    wait_until(lambda: version(laptop) == base and not pending(laptop), lambda: "it has gone back", 20)

with subtest("what is good cannot be confirmed from a login that was there before"):
    mgmt01.succeed(f"cat > /run/old <<'END'\n{OLD_LOGIN}END")
    mgmt01.succeed(f"systemd-run --quiet --collect --unit=old-login {login('old', 'sh /run/old')}")
    mgmt01.wait_for_file("/run/old-login")
    commit = sync(mgmt01, 60)
    mgmt01.succeed(f"echo {commit['id']} > /run/id")
    mgmt01.wait_for_file("/run/code")
    out = mgmt01.succeed("cat /run/answer")
    assert mgmt01.succeed("cat /run/code") == "1\n" and "login session-old began before the change" in out, out
    print(f"       {out.strip()}")

with subtest("from a new one it can, and it stays"):
    mgmt01.succeed(login("new", f"flor sync --confirm {commit['id']}"))
    assert not pending(mgmt01)
    mgmt01.wait_until_fails("systemctl is-active florete-rollback.service", timeout=10)
    mgmt01.reboot()
    mgmt01.wait_for_unit("florete-activate.service")
    assert version(mgmt01) > base and not pending(mgmt01)
    wait_reaches(mgmt01, "wiki")

with subtest("--confirm-when-healthy of the same confirms it, new needs fulfilled"):
    activation("start", drhorrible)
    wait_until(lambda: version(drhorrible) > base, lambda: "the provider has its policy", 60)
    began = time.time()
    raishan.succeed("systemd-run --quiet --collect --unit=sync sh -c 'flor sync --confirm-when-healthy --commit-timeout 100s; echo $? > /run/code'")
    raishan.wait_for_file(f"{STATE}/commit.json")
    activation("start", raishan)
    raishan.wait_for_file("/run/code")
    assert raishan.succeed("cat /run/code") == "0\n"
    assert version(raishan) > base and not pending(raishan)
    raishan.succeed(f"test -e {STATE}/needs/cert-service-news/current/svid.pem")
    print(f"       confirmed after {time.time() - began:.0f} s")
