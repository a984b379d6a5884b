"""An operator publishes, goes back and sees the fleet through the forwarder, without SSH; who may not is refused. Two operators then sign together."""
# operator: docs/how-to/publish-a-change.md

bring_up("unoperated")
PREPARED = operator.florete.removeprefix("path:").removesuffix("/florete")
KEY = f"--key {PREPARED}/operator/signing.key --signed ~/signed"
CONTROL = "http://florete-control.drhorrible.demo.flor.rete"


def at_mgmt01(text):
    """What root of mgmt01 types. That host has no Nix: this machine lends its programs."""
    (operator.home / "hosts").write_text(mgmt01.succeed("cat /etc/hosts"))
    return operator.succeed(f"mount --bind ~/hosts /etc/hosts\n{text}", at="mgmt01")


def florctl(command, revision="operated", clone=f"{PREPARED}/cluster"):
    """What florctl prints at mgmt01, and how it ends."""
    return at_mgmt01(f"florctl {command} git+file://{clone} --cluster {revision} 2>&1 && echo exit 0 || echo exit $?")


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

with subtest("a provider that withholds the newest documents is noticed on the host and by operators, until they arrive"):
    laptop.succeed("systemctl stop florete-activate.service")  # or it has them before the provider withholds them
    out = florctl(f"publish {KEY}", "operated-soon")
    assert "drhorrible: cluster demo: 5 hosts, serial" in out, out
    newest, others = versions()[0]["serial"], [m for m in machines if m is not laptop]
    wait_until(lambda: all(s == newest for s in everywhere(accepted, others)), lambda: f"the others have {newest}: {everywhere(accepted, others)}")

    def rename(old, new):
        """Root of the provider's host changes which versions it serves, and cannot change the signed list."""
        drhorrible.succeed(f"""systemctl stop florete-provider-config; python3 - <<'end'
import sqlite3
db = sqlite3.connect("/var/lib/florete-provider/config/state.db")
changed = db.execute("UPDATE kv SET key = CAST('{new}/{newest:016x}' AS BLOB) WHERE key = CAST('{old}/{newest:016x}' AS BLOB)").rowcount
assert changed == 1, changed
db.commit()
end
systemctl start florete-provider-config""")

    rename("config/version", "withheld")
    assert versions()[0]["serial"] < newest, versions()
    laptop.succeed("systemctl start florete-activate.service")
    alarm = f"its manifest has serial {accepted(laptop)}, and revocation list "
    laptop.wait_until_succeeds(f"flor status | grep '^withheld: {alarm}.* names serial {newest}, which was due by '")
    wait_until(lambda: alarm in florctl("status", "operated-soon"), lambda: florctl("status", "operated-soon"))
    print("       " + laptop.succeed("flor status | grep ^withheld:").strip())
    assert "withheld" not in ursula.succeed("flor status"), ursula.succeed("flor status")
    rename("withheld", "config/version")
    everywhere(lambda m: m.succeed("flor refetch config-documents"))  # the others refused the older documents, and wait for minutes
    wait_accepted(newest)
    laptop.wait_until_fails("flor status | grep ^withheld:")
    wait_until(lambda: alarm not in florctl("status", "operated-soon"), lambda: florctl("status", "operated-soon"))

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
    assert set(acts) == {"publish", "rollback", "rotate", "renew-revocations"}, rows
    for act in acts.values():
        assert act["caller"] == "spiffe://demo.flor/node/mgmt01" and act["from"].startswith("10.77.0.4:"), act
    assert acts["rollback"]["detail"]["before"].startswith(f"serial {newest},"), acts
    assert any(r["caller"] == "spiffe://demo.flor/user/alice" and r.get("code") == "not-granted" for r in rows), rows
    assert any(r.get("code") == "rollback" for r in json.loads(alice("/v1/audit"))["rows"])
    out = florctl("audit --kind control --outcome granted")
    assert {("granted", act) for act in acts} <= {tuple(line.split()[2:4]) for line in out.splitlines()} and out.endswith("exit 0\n"), out

ALICE, BOB = operator.home / "alice", operator.home / "bob"
BOBS_KEY = "--key ~/demo-2.key"
TOO_FEW = "signed by 1 of the 2 keys that trust.threshold demands (demo-1), want 1 more of demo-2"


def together(command, revision):
    """Bob signs in his clone, and Alice carries it out in hers."""
    out = florctl(f"{command} {BOBS_KEY} --sign-only ~/bob.signatures", revision, BOB)
    assert "signed by demo-2: another operator passes it with --with" in out and out.endswith("exit 0\n"), out
    return florctl(f"{command} {KEY} --with ~/bob.signatures", revision, ALICE)


def commit(clone, minutes, change="true"):
    """A commit of so many minutes ahead: newer than what was published, whichever revision it is published as."""
    date = f'GIT_COMMITTER_DATE="$(date --iso-8601=seconds --date=+{minutes}min)"'
    operator.succeed(f"cd {clone}; {change}; {date} git commit --quiet --all --allow-empty --message change; git -C {BOB} pull --quiet; cd ~")


with subtest("two operators with a key each publish together: every host has it"):
    operator.succeed(f"git clone --quiet {PREPARED}/cluster {ALICE}; git clone --quiet {ALICE} {BOB}")
    operator.succeed("(umask 077; nix key generate-secret --key-name demo-2 > ~/demo-2.key)")
    operator.succeed("cp ~/signed ~/demo-2.key.signed")  # Alice sends Bob the record of her key
    public = operator.succeed("nix key convert-secret-to-public < ~/demo-2.key").strip()
    commit(ALICE, 2, f"sed -i 's|signingKeys = facts.keys;|signingKeys = facts.keys ++ [ \"{public}\" ]; threshold = 2;|' topology.nix")
    out = florctl(f"publish {KEY}", clone=ALICE)
    assert TOO_FEW in out and out.endswith("exit 1\n"), out
    out = together("publish", "operated")
    assert "signed by demo-1, demo-2" in out and out.endswith("exit 0\n"), out
    wait_accepted(versions()[0]["serial"])
    signed_by = "signed by demo-1, demo-2 (2 keys must sign)"
    assert f"serial {versions()[0]['serial']} is {signed_by}" in florctl("status", clone=ALICE), florctl("status", clone=ALICE)
    ursula.wait_until_succeeds(f"flor status | grep --fixed-strings 'manifest {signed_by}'")
    assert signed_by in ursula.execute("flor doctor")[1]

with subtest("the provider refuses what one of them signed"):
    commit(ALICE, 4)
    florctl(f"publish {BOBS_KEY} --sign-only ~/bob.signatures --offline", clone=BOB)
    florctl(f"publish {KEY} --with ~/bob.signatures --out ~/both.json", clone=ALICE)
    before = versions()
    answer = at_mgmt01(f"sed 's| demo-2:[^\"]*||' ~/both.json > ~/one.json; curl --silent --data-binary @$HOME/one.json {CONTROL}/v1/publish")
    assert TOO_FEW in answer, answer
    assert versions() == before

with subtest("once the role is taken, the operator is none"):
    commit(ALICE, 6)
    out = together("publish", "unoperated")
    assert out.endswith("exit 0\n"), out
    wait_until(lambda: florctl("versions").endswith("exit 1\n"), lambda: "mgmt01 is refused")
    signed = json.loads(alice("/v1/versions"))["versions"][0]["serial"]
    assert signed > before[0]["serial"]
    wait_accepted(signed)

with subtest("hosts refuse what one of them signed, where the provider's host lets it pass"):
    mallory = operator.home / "mallory"
    operator.succeed(f"git clone --quiet {ALICE} {mallory}")
    commit(mallory, 8, "sed -i 's| threshold = 2;||' topology.nix")
    ref = f"git+file://{mallory} --cluster unoperated"
    forged = operator.succeed(
        f"""mkdir --parents ~/forged/srv/published ~/forged/usr/share/revisions/forged && cd ~/forged
        florctl publish {ref} --key {PREPARED}/operator/signing.key --signed ~/forged.signed --out srv/published/forged.json 2> ~/log
        florctl compile {ref} --host drhorrible --out usr/share/revisions/forged/documents 2> ~/log
        florctl units {ref} --host drhorrible --out usr/share/revisions/forged/units 2> ~/log
        tar --create --gzip . | base64 --wrap=0; cd ~"""
    ).split()[-1]
    drhorrible.succeed(f"echo {forged} | base64 --decode | tar --extract --gzip --no-same-owner --directory=/")
    drhorrible.execute("deploy forged")  # it imports them, too, perhaps before the policy is in force
    drhorrible.wait_until_succeeds("flor-provider import < /srv/published/forged.json")
    others = [m for m in machines if m is not drhorrible]

    def refuses(host):
        assert accepted(host) == signed, f"{host.name} took it"
        return TOO_FEW in (needs(host)["config-documents"].get("error") or {}).get("message", "")

    wait_until(lambda: all(everywhere(refuses, others)), lambda: f"all refuse it: {everywhere(needs, others)}")
    assert TOO_FEW in ursula.execute("flor doctor")[1], ursula.execute("flor doctor")
