"""Other accounts of a service's host neither connect past the allow list nor take the service's place."""
# common cluster: base

bring_up("base")
ursula.succeed("id mallory || useradd --create-home mallory")
UPSTREAM = next(p["upstream"] for p in manifest(ursula)["forwarder"]["publish"] if p["id"].endswith("/service/wiki"))
PORT = UPSTREAM.split(":")[1]


def connects(user):
    code, _ = ursula.execute(f"runuser -u {user} -- curl --silent --fail --max-time 5 http://{UPSTREAM}/")
    return code == 0


def refused(host):
    return json.loads(host.succeed("flor status --json"))["refusals"].get("upstream-foreign", 0)


with subtest("root and accounts of the system reach the upstream, who logs in does not"):
    ursula.wait_for_unit("florete-guard.service")
    wait_until(lambda: not connects("mallory"), lambda: "mallory is refused")
    assert connects("root") and connects("daemon")
    wait_reaches(mgmt01, "wiki")

with subtest("doctor says when the guard is gone, and the command it prints brings it back"):
    ursula.succeed("systemctl stop florete-guard.service")
    ursula.fail("nft list table inet florete")
    assert connects("mallory")
    checks = json.loads(ursula.execute("flor doctor --json")[1])["checks"]
    found = [f for c in checks if c["name"] == "guard" for f in c["findings"]]
    assert any(UPSTREAM in f["problem"] for f in found), checks
    ursula.succeed(found[0]["fix"])
    assert not connects("mallory")

with subtest("who takes the port of a service that is down gets nothing"):
    ursula.succeed("systemctl stop wiki.service")
    ursula.succeed(f"systemd-run --quiet --unit=squatter --uid=mallory {PROGRAMS}/answer.py {PORT} squatted")
    ursula.wait_until_succeeds("ss --listening --tcp --numeric | grep " + UPSTREAM)
    before = refused(ursula)
    wait_until(lambda: not reaches(mgmt01, "wiki") and refused(ursula) > before, lambda: f"it is refused: {refused(ursula)}")
    assert "squatted" not in mgmt01.execute("curl --silent --max-time 5 http://wiki.demo.flor.rete/")[1]
    ursula.succeed("systemctl stop squatter; systemctl start wiki.service")
    wait_reaches(mgmt01, "wiki")

with subtest("a provider: the account that signs people in reads nothing of what issues certificates, and failing it stops none"):
    ISSUER = f"{PROVIDER}/cert"
    for name in ("issuing.key", "seal.key", "state.db"):
        drhorrible.succeed(f"test -f {ISSUER}/{name}")
        for account in ("florete-provider-oidc", "florete-provider-config", "florete"):
            drhorrible.fail(f"runuser -u {account} -- cat {ISSUER}/{name}")
    drhorrible.fail(f"runuser -u florete-provider-oidc -- ls {ISSUER}/")
    drhorrible.succeed(f"mv {PROVIDER}/oidc/users.hujson /root/; systemctl restart --no-block florete-provider-oidc.service")
    drhorrible.wait_until_succeeds("journalctl --unit florete-provider-oidc.service | grep users.hujson")
    lose(ursula, "cert-service-wiki")
    wait_fulfilled([ursula])
    wait_reaches(mgmt01, "wiki")

drhorrible.succeed(f"mv /root/users.hujson {PROVIDER}/oidc/; systemctl restart florete-provider-oidc.service")
ursula.succeed("userdel --remove mallory")
