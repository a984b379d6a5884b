"""An operator publishes, goes back and sees the fleet through the forwarder, without SSH; who may not is refused."""
# operator: docs/how-to/publish-a-change.md

bring_up("unoperated")
PREPARED = operator.florete.removeprefix("path:").removesuffix("/florete")
KEY = f"--key {PREPARED}/operator/signing.key --signed ~/signed"
CONTROL = "http://florete-control.drhorrible.demo.flor.rete"


def florctl(command, revision="operated"):
    """What root of mgmt01 types, and how it ends. That host has no Nix: this machine lends its programs."""
    (operator.home / "hosts").write_text(mgmt01.succeed("cat /etc/hosts"))
    text = f"florctl {command} git+file://{PREPARED}/cluster --cluster {revision} 2>&1 && echo exit 0 || echo exit $?"
    return operator.succeed(f"mount --bind ~/hosts /etc/hosts\n{text}", at="mgmt01")


def versions():
    """What is served, newest first, once the provider answers."""
    wait_until(lambda: florctl("versions").endswith("exit 0\n"), lambda: f"the provider answers: {florctl('versions')}")
    return json.loads(florctl("versions --json").removesuffix("exit 0\n"))


def accepted(host):
    return json.loads(host.succeed(f"cat {STATE}/documents/current/manifest.envelope.json"))["serial"]


def wait_accepted(serial):
    wait_until(lambda: all(s == serial for s in everywhere(accepted)), lambda: f"all have {serial}: {everywhere(accepted)}")


def alice(path, options=""):
    """What a program of alice gets on her laptop."""
    return laptop.execute(f"runuser -u alice -- curl --silent --max-time 10 {options} {CONTROL}{path}")[1]


with subtest("who has no role is refused, and learns what to do"):
    out = florctl("versions")
    assert out.endswith("exit 1\n") and "this host does not know the name" in out and "--via ssh" in out, out
    for host in (raishan, laptop):  # alice's listener is not root's
        host.fail(f"curl --silent --fail --max-time 5 {CONTROL}/v1/versions")

with subtest("the socket is the forwarder's alone"):
    socket = "/run/florete-provider-config/control.sock"
    drhorrible.wait_until_succeeds(f"test -S {socket}")
    assert drhorrible.succeed(f"stat --format='%U %G %a' {socket}").strip() == "florete-provider-config florete-provider-config 660"
    drhorrible.succeed("useradd --create-home mallory")
    for account in ("mallory", "root"):
        drhorrible.fail(f"runuser -u {account} -- curl --silent --max-time 5 --unix-socket {socket} {CONTROL}/v1/versions")

with subtest("an operator publishes: every host has it"):
    publish("operated")  # the first that makes one, at the provider
    first = versions()
    out = florctl(f"publish {KEY}", "operated-closed")
    assert "drhorrible: cluster demo: 5 hosts, serial" in out and out.endswith("exit 0\n"), out
    closed = versions()[0]["serial"]
    assert closed > first[0]["serial"]
    wait_accepted(closed)
    wait_until(lambda: not reaches(mgmt01, "wiki"), lambda: "wiki is closed")

with subtest("and sees how the fleet is"):
    wait_until(lambda: all(m.name in florctl("status", "operated-closed") for m in machines), lambda: florctl("status", "operated-closed"))

with subtest("a user reads with any program, and publishes nothing"):
    wait_until(lambda: alice("/v1/versions").startswith("{"), lambda: "alice's forwarder has it, too")
    assert json.loads(alice("/v1/versions"))["versions"][0]["serial"] == closed
    wait_until(lambda: {h["host"] for h in json.loads(alice("/v1/hosts"))["hosts"]} == {m.name for m in machines}, lambda: "all have reported")
    answer = alice("/v1/publish", "--data nothing")
    assert "user/alice may read here, want write" in answer, answer
    assert "want a page of" in alice("/v1/versions", "--header 'Origin: http://evil.example'")

with subtest("an operator goes back"):
    out = florctl(f"rollback {first[0]['serial']} {KEY}")
    assert out.endswith("exit 0\n"), out
    assert versions()[0]["content"] == first[0]["content"]
    wait_accepted(versions()[0]["serial"])
    wait_reaches(mgmt01, "wiki")

with subtest("an operator has a host replace a secret: it requests another with its next report"):
    delivered = lambda: ursula.succeed(f"cat {STATE}/needs/oidc-outline/current/client-secret")
    former = delivered()
    out = florctl("rotate ursula oidc-outline")
    assert "rotation 1 of need oidc-outline is ordered" in out and out.endswith("exit 0\n"), out
    ursula.succeed("systemctl stop florete-agent.service")  # a change, which is reported within seconds
    wait_until(lambda: delivered() != former, lambda: "another secret is delivered")
    ursula.succeed("systemctl start florete-agent.service")
    assert florctl("rotate ursula oidc-nothing").endswith("exit 1\n")

with subtest("each act is in the audit log: who, from where, before and after"):
    rows = [json.loads(line) for line in drhorrible.succeed("flor-provider audit --json --kind control").splitlines()]
    acts = {r["code"]: r for r in rows if r["decision"] == "granted" and r["from"]}  # root of the host has none
    assert set(acts) == {"publish", "rollback", "rotate"}, rows
    for act in acts.values():
        assert act["caller"] == "spiffe://demo.flor/node/mgmt01" and act["from"].startswith("10.77.0.4:"), act
    assert acts["rollback"]["detail"]["before"].startswith(f"serial {closed},"), acts
    assert any(r["caller"] == "spiffe://demo.flor/user/alice" and r.get("code") == "not-granted" for r in rows), rows
    assert any(r.get("code") == "rollback" for r in json.loads(alice("/v1/audit"))["rows"])
    out = florctl("audit --kind control --outcome granted")
    assert {("granted", act) for act in acts} <= {tuple(line.split()[2:4]) for line in out.splitlines()} and out.endswith("exit 0\n"), out

with subtest("once the role is taken, the operator is none"):
    out = florctl(f"rollback {first[1]['serial']} {KEY}")
    assert out.endswith("exit 0\n"), out
    wait_until(lambda: florctl("versions").endswith("exit 1\n"), lambda: "mgmt01 is refused")
    assert json.loads(alice("/v1/versions"))["versions"][0]["content"] == first[1]["content"]
