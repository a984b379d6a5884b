"""A machine is revoked: within seconds every host refuses it and cuts what is open, and nothing brings it back but an operator."""
# operator: docs/how-to/take-access-away-now.md

bring_up("unoperated")
PREPARED = operator.florete.removeprefix("path:").removesuffix("/florete")
KEY = f"--key {PREPARED}/operator/signing.key --signed ~/signed"
WITHIN = 50  # requests: five seconds' worth of what one connection asks


def florctl(command, revision="operated"):
    """What root of mgmt01 types, and how it ends. That host has no Nix: this machine lends its programs."""
    (operator.home / "hosts").write_text(mgmt01.succeed("cat /etc/hosts"))
    text = f"florctl {command} git+file://{PREPARED}/cluster --cluster {revision} 2>&1 && echo exit 0 || echo exit $?"
    return operator.succeed(f"mount --bind ~/hosts /etc/hosts\n{text}", at="mgmt01")


def number(host):
    """Of the revocation list that a host has."""
    code, text = host.execute(f"cat {STATE}/revocations.json")
    return json.loads(json.loads(text)["list"])["number"] if code == 0 else 0


def refused(host, need):
    state = needs(host)[need]
    return state["state"] == "denied" and state["error"]["code"] == "revoked"


publish("operated")
wait_until(lambda: florctl("revocations").endswith("exit 0\n"), lambda: f"the provider answers: {florctl('revocations')}")
held, beside = Held(raishan, "outline"), Traffic(mgmt01, "wiki")
wait_until(lambda: held.so_far()["requests"] > 20, lambda: f"requests pass: {held.so_far()}")
raishan.succeed(f"cp --archive {STATE} /root/copied")
drhorrible.succeed("systemctl stop florete-provider-config; cp --archive /var/lib/florete-provider/config /root/before; systemctl start florete-provider-config")

with subtest("soon after the command a live connection of the machine is cut"):
    wait_until(lambda: florctl("revocations").endswith("exit 0\n"), lambda: "the provider answers")
    assert not held.so_far()["error"], held.so_far()
    laptop.block()  # and is not there meanwhile
    out = florctl(f"revoke --host raishan {KEY} --wait 10s")
    assert "revocation list 1 is offered" in out and out.endswith("exit 2\n"), out
    wait_until(lambda: held.so_far()["error"], lambda: f"it is cut: {held.so_far()}")
    result = held.so_far()
    signed = json.loads(json.loads(ursula.succeed(f"cat {STATE}/revocations.json"))["list"])["signed"]
    late = [at for at in result["answered"] if at > signed]
    print(f"       {len(late)} requests were answered since the list was signed, the cut came after {result['ended'] - signed:.1f} s")
    assert len(late) <= WITHIN, (signed, result)

with subtest("and every host that is there refuses it"):
    wait_until(lambda: {m.name for m in machines if number(m) == 1} >= {"drhorrible", "ursula", "mgmt01"}, lambda: "they have the list")
    assert not reaches(raishan, "outline") and not reaches(raishan, "wiki")

with subtest("the host that was away is named until it reports the list, which it does by itself"):
    assert "not yet in force on laptop: it " in out and "on ursula" not in out, out  # it had none, or never reported
    laptop.unblock()
    wait_until(lambda: florctl("revocations").endswith("exit 0\n"), lambda: f"laptop reports: {florctl('revocations')}")
    assert number(laptop) == 1
    out = florctl("revocations")
    assert "node/raishan" in out and "whenever" in out, out

with subtest("the machine neither renews nor enrols again by its SSH host key"):
    raishan.succeed("flor refetch cert-node")
    wait_until(lambda: refused(raishan, "cert-node"), lambda: f"it is refused: {needs(raishan)}")
    raishan.succeed(f"systemctl stop florete-activate; rm -r {STATE}; cp --archive /root/copied {STATE}; rm -r {STATE}/needs/cert-node; systemctl start florete-activate")
    wait_until(lambda: refused(raishan, "cert-node"), lambda: f"it is refused: {needs(raishan)}")
    raishan.succeed(f"systemctl stop florete-activate; rm -r {STATE}; cp --archive /root/copied {STATE}; systemctl start florete-activate; systemctl restart florete-agent")
    wait_started(raishan, "florete-agent.service")
    assert not reaches(raishan, "outline")

with subtest("software that is not ours refuses what it was given, by the CRL that each host keeps"):
    svid = raishan.succeed("cat /root/copied/needs/cert-node/current/svid.pem")
    ursula.succeed(f"cat > /root/svid.pem <<'end'\n{svid}end")
    verify = f"openssl verify -crl_check -CAfile {STATE}/needs/cert-node/current/bundle.pem -CRLfile {STATE}/crl.pem -untrusted"
    wait_until(lambda: "certificate revoked" in ursula.execute(f"{verify} /root/svid.pem /root/svid.pem 2>&1")[1], lambda: f"openssl refuses it: {ursula.execute(f'{verify} /root/svid.pem /root/svid.pem 2>&1')}")
    ursula.succeed(f"{verify} {STATE}/needs/cert-node/current/svid.pem {STATE}/needs/cert-node/current/svid.pem")

with subtest("a row of the audit log that is edited, and one that is removed, are found by florctl audit --verify and by any host"):
    assert "verified" in florctl("audit --verify") and "NOT verified" not in florctl("audit --verify"), florctl("audit --verify")
    rows = [json.loads(line) for line in florctl("audit --json --caller node/ursula --limit 1").splitlines() if line.startswith("{")]
    assert [row["caller"].rpartition("/")[2] for row in rows] == ["ursula"], rows
    proof = florctl(f"audit --proof {rows[0]['time']}")
    assert "of the log is: " in proof and "and the checkpoint" in proof and proof.endswith("exit 0\n"), proof
    drhorrible.succeed("""systemctl stop florete-provider-config; python3 - <<'end'
import sqlite3
db = sqlite3.connect("/var/lib/florete-provider/config/state.db")
rows = [k for k, v in db.execute("SELECT key, value FROM kv WHERE key >= CAST('audit/' AS BLOB) AND key < CAST('audit0' AS BLOB) ORDER BY key") if b"node/raishan" in v]
db.execute("UPDATE kv SET value = CAST(replace(CAST(value AS TEXT), 'node/raishan', 'node/ursula') AS BLOB) WHERE key = ?", rows[:1])
db.execute("DELETE FROM kv WHERE key = ?", rows[-1:])
db.commit()
end
systemctl start florete-provider-config""")
    wait_until(lambda: "NOT verified: 1 rows were edited, 1 are gone" in florctl("audit --verify"), lambda: f"they are found: {florctl('audit --verify')}")
    for host in (ursula, mgmt01):
        wait_until(lambda: host.succeed("flor witness --now") == "" and "drhorrible" in host.execute("flor witness")[1] and host.execute("flor witness")[0] == 2,
                   lambda: f"{host.name} finds it: {host.execute('flor witness')}")
        assert "audit: log of kind config on drhorrible" in host.succeed("flor status"), host.succeed("flor status")
    print("       " + ursula.execute("flor witness | grep config")[1].strip())

with subtest("until a person there accepts it, which is in the audit log"):
    ursula.succeed("flor witness accept drhorrible config --reason 'edited by a test'; flor witness")
    assert "audit: log" not in ursula.succeed("flor status") and "audit: log" in mgmt01.succeed("flor status")
    wait_until(lambda: "edited by a test" in florctl("audit --json"), lambda: "it has a row")

with subtest("nor do older documents let it in, nor the database of before"):
    deploy("base", [ursula])
    drhorrible.succeed("systemctl stop florete-provider-config; rm -r /var/lib/florete-provider/config; cp --archive /root/before /var/lib/florete-provider/config; systemctl start florete-provider-config")
    wait_until(lambda: "node/raishan" in florctl("revocations"), lambda: "the provider has taken the list that its host has")
    assert not reaches(raishan, "outline") and number(ursula) == number(drhorrible) == 1

with subtest("where its host lost the list too, the provider issues nothing until the newest is supplied"):
    drhorrible.succeed("systemctl stop florete-activate florete-provider-config florete-provider-cert; rm -r /var/lib/florete-provider/config "
                       f"{STATE}/revocations.json; cp --archive /root/before /var/lib/florete-provider/config; systemctl start florete-provider-cert florete-provider-config")
    wait_until(lambda: "nothing has been revoked" in florctl("revocations"), lambda: "the provider has no list")
    raishan.succeed("flor refetch cert-node")
    wait_until(lambda: (needs(raishan)["cert-node"].get("error") or {}).get("code") == "list-behind", lambda: f"nothing is issued: {needs(raishan)}")
    drhorrible.succeed("systemctl start florete-activate")
    (operator.home / "revocations.json").write_text(ursula.succeed(f"cat {STATE}/revocations.json"))
    out = florctl(f"revoke --supply {operator.home}/revocations.json --wait 1s")
    assert "revocation list 1 is offered" in out, out  # reports are of before too

with subtest("reinstated, it works with certificates that are issued since, and with no older one"):
    raishan.succeed("systemctl stop florete-activate")  # which asks for another one by itself
    out = florctl(f"reinstate --host raishan {KEY} --wait 1s")
    assert "revocation list 2 is offered" in out, out
    wait_until(lambda: number(ursula) == number(drhorrible) == 2, lambda: "they have it")
    assert not reaches(raishan, "outline")
    raishan.succeed("systemctl start florete-activate", "flor refetch cert-node")
    wait_fulfilled([raishan])
    wait_reaches(raishan, "outline")
    wait_until(lambda: florctl("revocations").endswith("exit 0\n"), lambda: f"all report: {florctl('revocations')}")

with subtest("no other host suffered"):
    result = beside.end()
    assert not result["failed"], result
    print(f"       {result['requests']} requests beside it, none failed")
