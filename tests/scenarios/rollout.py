"""A version reaches hosts in waves, and hosts in a disruption budget one after the other; one that breaks the first host goes back by itself, and no other host ever had it."""
# minutes: 5
# operator: docs/how-to/stage-a-rollout.md

bring_up("waves")
PREPARED = operator.florete.removeprefix("path:").removesuffix("/florete")
KEY = f"--key {PREPARED}/operator/signing.key --signed ~/signed"
WAVES = [[ursula], [raishan], [drhorrible, laptop]]  # and mgmt01, when the budget of laptop and mgmt01 permits
BUDGET = "mgmt01: waits for the budget of at most 1 at once of hosts with tags pair: laptop: "
HEALTHY = 20  # seconds, as the revisions have it


def at_mgmt01(script):
    """What root of mgmt01 types. That host has no Nix: this machine lends its programs."""
    (operator.home / "hosts").write_text(mgmt01.succeed("cat /etc/hosts"))
    return operator.succeed(f"mount --bind ~/hosts /etc/hosts\n{script}", at="mgmt01")


def florctl(command, revision="waves"):
    """A command for the cluster, and how it ends."""
    return at_mgmt01(f"florctl {command} git+file://{PREPARED}/cluster --cluster {revision} 2>&1 && echo exit 0 || echo exit $?")


def status():
    return json.loads(drhorrible.succeed("flor-provider control GET /v1/rollout"))


def versions():
    return json.loads(drhorrible.succeed("flor-provider control GET /v1/versions"))["versions"]


def envelope(host, kind="manifest"):
    return json.loads(host.succeed(f"cat {STATE}/documents/current/{kind}.envelope.json"))["serial"]


def healthy():
    """Have all hosts reported, and nothing amiss?"""
    reports = [h["report"] for h in json.loads(drhorrible.succeed("flor-provider control GET /v1/hosts"))["hosts"]]
    return len(reports) == len(machines) and all(
        r.get("forwarder", {}).get("state") == "running"
        and not r["forwarder"]["problems"]
        and all(n["state"] == "fulfilled" for n in r["needs"])
        for r in reports
    )


def wait_healthy():
    wait_until(healthy, lambda: f"all hosts are healthy: {drhorrible.succeed('flor-provider control GET /v1/hosts')}")


def offer(revision):
    """Publishes a revision, and returns its serial."""
    out = florctl(f"publish {KEY}", revision)
    assert out.endswith("exit 0\n"), out
    print("       " + out.splitlines()[-2])
    return status()["serial"]


def until(what, *ends):
    """Waits until the rollout has ended."""
    wait_until(lambda: status()["status"] in ends, lambda: f"{what}: {status()}")


def took(host, serial):
    """When a host took a version, or nothing: by its journal, however late one looks."""
    code, lines = host.execute(f"journalctl --no-pager --output=short-unix --unit=florete-activate.service | grep 'taken from the network: manifest of .*, serial {serial},'")
    return float(lines.split()[0]) if code == 0 else None


publish("waves")  # the first: there are none before it, and no waves
first = versions()[0]
wait_until(lambda: all(envelope(m) == first["serial"] for m in machines), lambda: "all have the first version")
wait_until(lambda: "florete-control" in mgmt01.succeed("cat /etc/hosts"), lambda: "mgmt01 knows the provider's name")
wait_until(lambda: florctl("versions").endswith("exit 0\n"), lambda: florctl("versions"))

with subtest("the canary has it first, then wave after wave, each once the one before was healthy for a while"):
    wait_healthy()
    laptop.succeed("systemctl mask --runtime --now florete-agent.service")
    wait_until(lambda: not healthy(), lambda: "the laptop has reported that its forwarder is down")
    serial = offer("waves-news")
    wait_until(lambda: all(envelope(h) == serial for h in WAVES[-1]), lambda: f"all but mgmt01 have it: {status()}")
    had = {h.name: took(h, serial) for wave in WAVES for h in wave}
    for wave, following in zip(WAVES[:-1], WAVES[1:], strict=True):
        for host in following:
            gap = had[host.name] - max(had[h.name] for h in wave)
            assert gap >= HEALTHY - 1, f"{host.name} {gap} s after the wave before: {had}"
    began = had["ursula"]
    print(f"       canary, early, rest: {', '.join(f'{had[n] - began:.0f} s' for n in ('ursula', 'raishan', 'laptop'))}")

with subtest("a broken host holds the next one of its budget back, from rollouts and from florctl deploy"):
    wait_until(lambda: took(mgmt01, serial) or BUDGET + "its forwarder" in status().get("reason", ""), lambda: f"mgmt01 waits for the laptop: {status()}")
    assert not took(mgmt01, serial), "mgmt01 has it although the laptop is broken"
    assert BUDGET in florctl("rollout status", "waves-news")
    mgmt01.succeed(
        "printf 'UsePAM no\\n' > /etc/ssh/sshd_config.d/container.conf",
        f"mkdir -p -m 700 /root/.ssh; echo '{operator.public_key}' > /root/.ssh/authorized_keys",
        "systemctl enable --quiet --now ssh.service",
    )
    out = at_mgmt01(f"""
        florctl deploy mgmt01 --flake 'git+file://{PREPARED}/cluster' --cluster waves-news > ~/deploy 2>&1 & pid=$!
        until grep --quiet 'waits for' ~/deploy || ! kill -0 $pid; do sleep 0.3; done
        kill $pid && wait $pid || true
        cat ~/deploy""")
    assert BUDGET + "its forwarder" in out and "copying" not in out, out
    assert not took(mgmt01, serial)

with subtest("repaired, it lets the next one have its turn"):
    laptop.succeed("systemctl unmask --runtime florete-agent.service", "systemctl start florete-agent.service")
    wait_until(lambda: took(mgmt01, serial), lambda: f"mgmt01 has it: {status()}")
    until("the rollout is done", "done", "stopped")
    assert status()["status"] == "done", status()
    assert all(envelope(m) == serial for m in machines)

with subtest("nobody waited for a policy: what the service needs was granted before its host had it"):
    raishan.wait_until_succeeds(f"grep '\"state\":\"fulfilled\"' {STATE}/needs/cert-service-news/state.json")
    log = raishan.succeed("journalctl --no-pager --unit=florete-activate.service")
    assert "policy-behind" not in log, log
    in_force = lambda: {json.loads(line)["serial"] for line in drhorrible.succeed("flor-provider audit --json --kind policy").splitlines()}
    wait_until(lambda: {serial - 1, serial} <= in_force(), lambda: f"the policy for the time of the rollout was in force, then the version's: {in_force()}")

with subtest("a version that breaks the canary goes back by itself, and no other host ever had it"):
    good = versions()[0]
    wait_healthy()
    serial = offer("waves-broken")
    until("the rollout has stopped", "stopped", "done")
    assert status()["status"] == "stopped" and "ursula: its forwarder" in status()["reason"], status()
    assert took(ursula, serial)
    assert versions()[0]["content"] == good["content"], versions()
    wait_until(lambda: all(envelope(m) == serial + 1 for m in machines), lambda: "all have what was before")
    wait_reaches(mgmt01, "wiki")
    assert "stopped" in florctl("rollout status", "waves-broken")
    for host in (raishan, drhorrible, mgmt01, laptop):
        assert not took(host, serial), host.name

with subtest("paused, nothing goes on until it is resumed"):
    wait_healthy()
    serial = offer("waves-closed")
    wait_until(lambda: envelope(ursula) == serial, lambda: "the canary has it")
    out = florctl("rollout pause")
    assert "paused, wave 1 of 3: by node/mgmt01" in out, out
    time.sleep(HEALTHY + 5)
    assert envelope(raishan) != serial and status()["wave"] == 1, status()
    assert florctl("rollout resume").endswith("exit 0\n")

with subtest("a host in a group with a maintenance window waits for it, and the waves after it too"):
    wait_until(lambda: "waits for the maintenance windows of raishan" in status().get("reason", ""), lambda: f"it waits: {status()}")
    time.sleep(10)
    assert envelope(raishan) != serial and envelope(laptop) != serial and status()["wave"] == 2, status()

with subtest("to all at once, whatever the window and the budget: the operator's word"):
    out = florctl(f"publish --at-once {KEY}", "waves-closed")
    assert out.endswith("exit 1\n") and "permits at most 1 at once of hosts with tags pair" in out, out
    assert envelope(laptop) != serial and status()["status"] == "active", status()
    assert florctl(f"publish --at-once --beyond-budget {KEY}", "waves-closed").endswith("exit 0\n")
    wait_until(lambda: all(envelope(m) == serial for m in machines), lambda: "all have it")
    assert status()["status"] == "superseded", status()

with subtest("in the window the host is offered it"):
    good = versions()[0]
    wait_healthy()
    serial = offer("waves-open")
    wait_until(lambda: envelope(raishan) == serial, lambda: f"raishan has it: {status()}")
    assert envelope(laptop) != serial and status()["status"] == "active", status()

with subtest("aborted, hosts have the former documents again"):
    assert "aborted, wave 2 of 3" in florctl("rollout abort")
    assert versions()[0]["content"] == good["content"]
    wait_until(lambda: all(envelope(m) == serial + 1 for m in machines), lambda: "all have what was before")
