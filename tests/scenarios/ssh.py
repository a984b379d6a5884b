"""Alice logs in over SSH without a key or a prompt, as the accounts that her roles name, or for as long as she is on call; her sessions are recorded; losing the role or being revoked ends what is open."""
# operator: docs/how-to/log-in-over-ssh.md docs/how-to/ask-for-access-for-an-hour.md docs/how-to/record-ssh-sessions.md
# minutes: 2
# systemd: what the sshd and ssh of Debian 12 make of the configuration

bring_up("shells")
PREPARED = operator.florete.removeprefix("path:").removesuffix("/florete")
KEY = f"--key {PREPARED}/operator/signing.key --signed ~/signed"
CONTROL = "http://florete-control.drhorrible.demo.flor.rete"
AUDITOR = "AGE-SECRET-KEY-19UA44UC3224Q62DNNQ7090Z8SEGKNX9885FMV33WN5YHZ9Y0CDTSFS96LF"
RECORDINGS = f"{STATE}/recordings"
STRICT = "-o BatchMode=yes -o StrictHostKeyChecking=yes -o UserKnownHostsFile=/dev/null"


def florctl(command, revision="shells"):
    """What root of mgmt01 types, and how it ends. That host has no Nix: this machine lends its programs."""
    (operator.home / "hosts").write_text(mgmt01.succeed("cat /etc/hosts"))
    text = f"florctl {command} git+file://{PREPARED}/cluster --cluster {revision} 2>&1 && echo exit 0 || echo exit $?"
    return operator.succeed(f"mount --bind ~/hosts /etc/hosts\n{text}", at="mgmt01")


def alice(command):
    """What alice types on her laptop, and how it ends."""
    code, out = laptop.execute(f"cd /tmp && runuser -u alice -- sh -c {json.dumps(command)} 2>&1")
    return code, out.strip()


def access(who, host, command):
    """What florctl access prints for a user of a host, who evaluates the flake in a Nix store of their own. That user has but the right of root of this machine to read its files."""
    for file in ("hosts", "passwd"):
        (operator.home / file).write_text(host.succeed(f"cat /etc/{file}"))
    rights = "--clear-groups --inh-caps=+dac_read_search --ambient-caps=+dac_read_search"
    return operator.succeed(
        f"""mount --bind ~/hosts /etc/hosts; mount --bind ~/passwd /etc/passwd
        install -d -o {who} ~/{who}; mount --bind ~/{who} /mnt
        setpriv --reuid={who} --regid=nogroup {rights} env HOME=/mnt NIX_REMOTE=/mnt/nix florctl access {command} path:{PREPARED}/cluster --cluster shells 2>&1 && echo exit 0 || echo exit $?""",
        at=host.name,
    )


def requests(lasts):
    """Alice requests the role oncall; the ID of the request."""
    out = access("alice", laptop, f"request oncall --for {lasts} --reason 'the disk is full'")
    assert "requested; one of ben approves it with:" in out and out.endswith("exit 0\n"), out
    return out.partition("florctl access approve ")[2].split()[0]


def approver(command, request):
    """Ben approves or ends, and names a request by the beginning of its ID."""
    out = access("ben", mgmt01, f"{command} {request[:6]} --yes --key {PREPARED}/keys/next")
    assert out.endswith("exit 0\n"), out
    return out


def logs_in(account, host):
    return alice(f"ssh {STRICT} {account}@shell.{host}.demo.flor.rete id -un") == (0, account)


def refused(account, host):
    code, out = alice(f"ssh {STRICT} {account}@shell.{host}.demo.flor.rete id -un")
    return code == 255 and "Permission denied" in out


class Session:
    """A login that stays open. It says every second that it is."""

    units = iter(range(99))

    def __init__(self, account, host):
        self.unit = f"session-{next(self.units)}"
        laptop.succeed(f"systemd-run --quiet --collect --unit={self.unit} --property=User=alice ssh {STRICT} {account}@shell.{host}.demo.flor.rete 'while sleep 1; do echo open; done'")
        wait_until(lambda: self.said("open") or self.ended(), lambda: f"the login at {host} is open: {self.journal()}")
        assert self.said("open"), self.journal()

    def journal(self):
        return laptop.execute(f"journalctl --unit={self.unit} --output=cat --lines=20")[1]

    def said(self, line):
        return line in self.journal().splitlines()

    def ended(self):
        return laptop.execute(f"systemctl is-active --quiet {self.unit}")[0] != 0


for host in (raishan, ursula):
    host.succeed("useradd --create-home --shell /bin/sh deploy", "flor ssh server-config > /etc/ssh/sshd_config.d/florete.conf", "systemctl start ssh.service")
raishan.succeed("useradd --create-home --shell /bin/sh rescue")
laptop.succeed("flor ssh client-config > /etc/ssh/ssh_config.d/florete.conf")

with subtest("alice logs in as the accounts of her roles, at hosts that she has never called"):
    for account, host in (("deploy", "ursula"), ("deploy", "raishan"), ("root", "raishan")):
        assert logs_in(account, host), alice(f"ssh -v {STRICT} {account}@shell.{host}.demo.flor.rete id -un")
    version = alice("ssh -V")[1]
    print(f"       {version}; certificate: {laptop.succeed(f'ssh-keygen -L -f {STATE}/needs/ssh-user-alice/current/id_ed25519-cert.pub | grep -E Valid:').strip()}")

with subtest("and copies files"):
    code, out = alice(f"echo hello > /tmp/hello && scp {STRICT} /tmp/hello deploy@shell.ursula.demo.flor.rete:hello && scp {STRICT} deploy@shell.ursula.demo.flor.rete:hello /tmp/back && cmp /tmp/hello /tmp/back")
    assert code == 0, out
    assert ursula.succeed("cat /home/deploy/hello") == "hello\n"

with subtest("as no other account: not as root where her role does not say so"):
    ursula.succeed("useradd --create-home backup-agent")
    assert refused("root", "ursula") and refused("backup-agent", "ursula"), alice(f"ssh {STRICT} root@shell.ursula.demo.flor.rete id")
    ursula.wait_until_succeeds("journalctl --output=cat | grep 'user/alice has no login as root on this host'")

with subtest("the network without a certificate gives nothing, and a certificate without the network neither"):
    code, out = alice(f"ssh -F none {STRICT} -o 'KnownHostsCommand /usr/local/bin/flor ssh known-hosts -- %H' deploy@shell.ursula.demo.flor.rete id")
    assert code == 255 and "Permission denied" in out, out
    keys = laptop.succeed(f"tar -C {STATE}/needs/ssh-user-alice/current -ch . | base64 -w0").strip()
    mgmt01.succeed(f"mkdir -m 700 /root/stolen && echo {keys} | base64 -d | tar -x -C /root/stolen --no-same-owner")
    address = ursula.succeed("ip -4 -o addr show scope global | awk '{print $4}' | cut -d/ -f1 | head -1").strip()
    code, out = mgmt01.execute(f"ssh -F none -o BatchMode=yes -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -i /root/stolen/id_ed25519 deploy@{address} id 2>&1")
    assert code == 255 and "Permission denied" in out, out

if newest:
    with subtest("a request of alice to be on call gives her nothing by itself"):
        first = requests("1h")
        assert refused("rescue", "raishan")

    with subtest("nor does a grant that she signs: not in her name, and not in Ben's, whoever offers it"):
        operator.succeed("ssh-keygen -q -t ed25519 -N '' -f ~/alice.key")
        out = access("alice", laptop, f"approve {first} --yes --key {operator.home}/alice.key")
        assert "no approver of role oncall has this key" in out and out.endswith("exit 1\n"), out
        now, user = int(time.time()), "spiffe://demo.flor/user"
        grant = json.dumps({"schema": "florete.access-grant/v1", "cluster": "demo", "id": "ab" * 16, "role": "oncall", "user": f"{user}/alice", "from": now, "until": now + 3600, "approver": f"{user}/ben"})
        (operator.home / "grant").write_text(f"florete-access-grant-v1\n{grant}")
        forged = json.dumps({"grant": grant, "signature": operator.succeed("ssh-keygen -Y sign -n florete-access -f ~/alice.key < ~/grant")})
        laptop.succeed(f"cat > /tmp/forged <<'end'\n{forged}\nend")
        code, out = alice(f"curl --silent --data @/tmp/forged {CONTROL}/v1/access/grants")
        assert "signed with none of the keys of user/ben" in out, out
        drhorrible.succeed(f"""systemctl stop florete-provider-config; python3 - <<'end'
import json, sqlite3
db = sqlite3.connect("/var/lib/florete-provider/config/state.db")
(value,) = db.execute("SELECT value FROM kv WHERE key = CAST('config/access' AS BLOB)").fetchone()
access = json.loads(value)
access["grants"].append(json.loads({forged!r}))
db.execute("UPDATE kv SET value = CAST(? AS BLOB) WHERE key = CAST('config/access' AS BLOB)", (json.dumps(access),))
db.commit()
end
systemctl start florete-provider-config""")
        raishan.wait_until_succeeds("journalctl --output=cat | grep 'signed with none of the keys of user/ben'")
        assert refused("rescue", "raishan")

    with subtest("Ben sees the request and approves it: she logs in"):
        out = access("ben", mgmt01, "list")
        assert first in out and "waits, for 1h0m0s" in out and "the disk is full" in out, out
        out = approver("approve", first)
        assert "user/alice has role oncall until" in out, out
        print(f"       after {wait_until(lambda: logs_in('rescue', 'raishan'), lambda: 'she logs in'):.1f} s")
        given = json.loads(access("alice", laptop, "list --json").removesuffix("exit 0\n"))
        assert [(g["id"], g["state"], g["approver"]) for g in given] == [(first, "in force", f"{user}/ben")], given

    with subtest("he ends it: her session ends, and she is refused"):
        on_call = Session("rescue", "raishan")
        approver("end", first)
        print(f"       after {wait_until(on_call.ended, lambda: f'it ends: {on_call.journal()}'):.1f} s")
        assert refused("rescue", "raishan") and logs_in("deploy", "raishan")

    with subtest("alice is on call again, for a minute"):
        approver("approve", requests("1m"))
        (given,) = json.loads(access("alice", laptop, "list --json").removesuffix("exit 0\n"))
        wait_until(lambda: logs_in("rescue", "raishan"), lambda: "she logs in")
        on_call = Session("rescue", "raishan")

    with subtest("all of this is in the audit log"):
        out = florctl("audit --kind control")
        acts = [line.split()[2:4] for line in out.splitlines() if " access-" in line]
        assert sorted(acts) == sorted([["granted", f"access-{act}"] for act in ("request", "grant", "end", "request", "grant")]), out
        assert "user/ben gives role oncall to user/alice" in out and "signed with none of the keys of user/ben" in out, out

    with subtest("an operator lists the sessions over SSH, and ends one"):
        for host in (raishan, ursula):
            host.succeed(f"mkdir -p -m 700 /root/.ssh; echo '{operator.public_key}' > /root/.ssh/authorized_keys")
        at_ursula = Session("deploy", "ursula")
        of_shells = f"git+file://{PREPARED}/cluster --cluster shells --via ssh"
        (session,) = (s for s in json.loads(operator.succeed(f"florctl sessions {of_shells} --json")) if s["host"] == "ursula")
        assert (session["service"], session["caller"], session["protocol"]) == ("spiffe://demo.flor/service/ursula/shell", f"{user}/alice", "ssh"), session
        out = operator.succeed(f"florctl sessions end {session['id']} {of_shells}")
        assert out == f"ursula: session {session['id']}: ended\n", out
        wait_until(at_ursula.ended, lambda: f"it ends: {at_ursula.journal()}")
        ursula.wait_until_succeeds("journalctl --output=verbose FLORETE_END=ended-by-operator | grep -x ' *FLORETE_BY=account root'")
        assert logs_in("deploy", "ursula")

with subtest("after a signing key was stolen, the generation is raised: its certificates are refused, and alice gets another"):
    stolen = f"{STATE}/needs/ssh-user-alice/current"
    laptop.succeed(f"install -d -m 700 -o alice /tmp/old && cp -L {stolen}/id_ed25519* /tmp/old && chown -R alice /tmp/old")
    of_old = f"ssh {STRICT} -F none -o 'KnownHostsCommand /usr/local/bin/flor ssh known-hosts -- %H' -o IdentitiesOnly=yes -i /tmp/old/id_ed25519 deploy@shell.ursula.demo.flor.rete id -un"
    assert alice(of_old) == (0, "deploy"), alice(of_old)
    deploy("shells-renewed")
    refetch = "flor refetch ssh-keys >/dev/null"
    wait_until(lambda: ursula.execute(refetch)[0] == 0 and alice(of_old)[0] == 255, lambda: f"the old one is refused: {alice(of_old)}")
    wait_until(lambda: raishan.execute(refetch)[0] == 0 and laptop.execute("flor refetch ssh-user-alice >/dev/null")[0] == 0 and logs_in("deploy", "ursula") and logs_in("deploy", "raishan"), lambda: "alice has another certificate")

if newest:
    with subtest("after the minute, her session ends"):
        wait_until(on_call.ended, lambda: f"it ends: {on_call.journal()}")
        late = seconds_of(raishan) - given["until"]
        print(f"       after {late:.1f} s")
        assert late >= 0 and refused("rescue", "raishan"), late

def recordings():
    """Of what session the audit log says that it was recorded: what it says, and the details."""
    rows = [json.loads(line) for line in florctl("audit --json").splitlines() if line.startswith("{")]
    return [(r["message"], r["detail"]) for r in rows if r.get("code") == "session-recorded"]


with subtest("from now on sessions are recorded, and only certificates log in"):
    raishan.succeed(
        "usermod --shell /bin/bash deploy",
        # bash reads this file before it runs what sshd wants it to, and nobody would record that.
        "echo '[ -z \"$SSH_ORIGINAL_COMMAND\" ] || touch ~/unseen' > /home/deploy/.bashrc",
        "runuser -u deploy -- sh -c 'mkdir -m 700 ~deploy/.ssh; cat > ~deploy/.ssh/authorized_keys' < /etc/ssh/ssh_host_ed25519_key.pub",
    )
    own_key = "ssh -i /etc/ssh/ssh_host_ed25519_key -o BatchMode=yes -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null deploy@127.0.0.1 id -un"
    assert raishan.succeed(own_key) == "deploy\n"
    for host in (raishan, ursula):
        assert "flor ssh server-config" in host.execute("flor doctor")[1]
        host.succeed("flor ssh server-config > /etc/ssh/sshd_config.d/florete.conf", "systemctl reload ssh.service")
    assert raishan.execute(f"{own_key} 2>/dev/null")[0] == 255
    code, out = alice(f"printf '%s\n' 'echo six times $((6*7))' 'id -un' 'exit 3' | ssh -tt {STRICT} deploy@shell.raishan.demo.flor.rete")
    assert code == 3 and "This session is recorded." in out and "six times 42" in out, out
    code, out = alice(f"scp {STRICT} /tmp/hello deploy@shell.raishan.demo.flor.rete:hello && scp {STRICT} deploy@shell.raishan.demo.flor.rete:hello /tmp/back && cmp /tmp/hello /tmp/back")
    assert code == 0, out
    assert raishan.execute("test -e /home/deploy/unseen")[0] != 0
    assert "recorded" in alice("flor remote")[1]

with subtest("their digests are in the audit log, and the auditor reads them"):
    (operator.home / "auditor.key").write_text(AUDITOR + "\n")
    (operator.home / "auditor.key").chmod(0o600)

    def replayed():
        """The sessions on raishan, as the auditor reads them."""
        for said, detail in recordings():
            if "as deploy at service/raishan/shell" in said:
                (operator.home / detail["file"]).write_text(raishan.succeed(f"cat {RECORDINGS}/{detail['file']}"))
                assert raishan.succeed(f"cd {RECORDINGS}; sha256sum {detail['file']}").split()[0] == detail["sha256"]
                yield operator.succeed(f"florctl sessions replay ~/{detail['file']} --identity ~/auditor.key --cast - 2>/dev/null")

    wait_until(lambda: any("six times 42" in cast and '"x","3"' in cast for cast in replayed()), lambda: f"one has the shell: {list(replayed())}")
    assert raishan.execute(f"runuser -u deploy -- ls {RECORDINGS}")[0] != 0 and "six times" not in raishan.succeed(f"cat {RECORDINGS}/*")

with subtest("without the recorder nobody logs in, and an open session ends with it"):
    open_one = Session("deploy", "ursula")
    ursula.succeed("systemctl stop florete-recorder.socket florete-recorder.service")
    wait_until(open_one.ended, lambda: f"it ends: {open_one.journal()}")
    code, out = alice(f"ssh {STRICT} deploy@shell.ursula.demo.flor.rete touch /home/deploy/unseen")
    assert code == 1 and "cannot be recorded" in out and ursula.execute("test -e /home/deploy/unseen")[0] != 0, out
    ursula.succeed("systemctl start florete-recorder.socket")
    assert logs_in("deploy", "ursula")
    wait_until(lambda: any("not to its end" in said for said, _ in recordings()), lambda: f"the log says so: {recordings()}")

with subtest("a login that a role no longer permits ends, and others stay"):
    at_ursula, at_raishan = Session("deploy", "ursula"), Session("deploy", "raishan")
    deploy("shells-closed")
    wait_until(at_ursula.ended, lambda: f"it ends: {laptop.execute('systemctl status {at_ursula.unit}')}")
    assert refused("deploy", "ursula") and not at_raishan.ended()
    assert logs_in("deploy", "raishan")

with subtest("alice is revoked: what is open ends, and she is refused everywhere"):
    publish("shells-closed")
    wait_until(lambda: florctl("revocations", "shells-closed").endswith("exit 0\n"), lambda: f"the provider answers: {florctl('revocations', 'shells-closed')}")
    out = florctl(f"revoke user/alice {KEY} --wait 10s", "shells-closed")
    assert "revocation list 1 is offered" in out, out
    wait_until(at_raishan.ended, lambda: f"it ends: {out}")
    ended = seconds_of(raishan)
    signed = json.loads(json.loads(raishan.succeed(f"cat {STATE}/revocations.json"))["list"])["signed"]
    print(f"       at most {ended - signed:.1f} s after the list was signed")
    assert not logs_in("deploy", "raishan") and not logs_in("root", "raishan")
    # sshd would refuse the certificate by itself, too.
    certificate = laptop.succeed(f"cut -d' ' -f2 {STATE}/needs/ssh-user-alice/current/id_ed25519-cert.pub").strip()
    out = raishan.succeed(f"flor ssh principals deploy {certificate} 2>&1")
    assert "user/alice is revoked" in out, out
