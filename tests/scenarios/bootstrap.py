"""The page for plain Linux, typed as it stands, makes a cluster of three hosts from nothing; later it replaces the root in peace."""
# operator: modules/BOOTSTRAP.md

ROOT = "/var/lib/florete/needs/cert-node/current"
LIFETIME = 20


def typed(heading, patience=0):
    """Types what is below a heading. Where the page says to see something, that may take a moment."""
    for block in blocks.pop(heading):
        # What differs from an operator's: where Florete is from, and how long a day is.
        block = block.replace("github:florete/florete", operator.florete).replace("lifetime = 86400", f"lifetime = {LIFETIME}").replace("interval = 900", "interval = 2")
        end = time.time() + patience
        while True:
            try:
                return operator.succeed(block)
            except AssertionError:
                if time.time() > end:
                    raise
                time.sleep(1)


def serials():
    return [host.succeed(f"openssl x509 -noout -serial -in {ROOT}/svid.pem").strip() for host in hosts]


def renewed():
    """Waits until every host has another certificate."""
    before = serials()
    wait_until(lambda: not set(before) & set(serials()), lambda: f"every host renews: {serials()}, was {before}", timeout=3 * LIFETIME)


# Debian as it is installed: an SSH server, and nothing of ours.
hosts = [drhorrible, ursula, mgmt01]
for host in hosts:
    host.start(allow_reboot=True)
for host in hosts:
    host.wait_for_unit("multi-user.target")
    host.execute("systemctl disable --now wiki.service metrics.service whole.service")
    host.succeed(
        "umount /usr/local/bin /usr/local/lib/scenarios",
        "rm -r /etc/florete /usr/share/revisions /etc/systemd/system/wiki.service /etc/systemd/system/outline.service",
        "rm -rf /etc/sysusers.d/*.conf /var/lib/florete-provider /srv/*",
        "printf 'UsePAM no\\n' > /etc/ssh/sshd_config.d/container.conf",
        f"mkdir -p -m 700 /root/.ssh; echo '{operator.public_key}' > /root/.ssh/authorized_keys",
        "[ -s /etc/hosts ] || echo '127.0.0.1 localhost' > /etc/hosts",
        "systemctl start ssh.service",
    )

with subtest("secrets, accounts, the flake, the provider's settings"):
    for heading in ("1. Two secrets, outside the flake", "2. Accounts", "3. The flake", "4. The provider host"):
        typed(heading)

with subtest("three bundles are installed, one certificate is signed, documents are published"):
    typed("5. Install")
    drhorrible.wait_for_file("/var/lib/florete-provider/cert/issuing.csr")
    typed("6. Sign, and publish")
    typed("7. A service")

with subtest("it works"):
    began = time.time()
    said = typed("8. See that it works", patience=120)
    assert "welcome" in said and '"issuer": "http://auth.demo.flor.rete"' in said, said
    print(f"       {time.time() - began:.0f} s later")
    mgmt01.fail("curl --silent --fail --max-time 5 http://wiki.demo.flor.rete/")

with subtest("the fleet in one table: what each host is, and a forwarder that was stopped"):
    table = lambda: {h["name"]: h for h in json.loads(operator.succeed("florctl status ~/demo --via ssh --json || [ $? = 2 ]"))}
    fleet = table()
    assert sorted(fleet) == sorted(host.name for host in hosts), fleet.keys()
    for host in fleet.values():
        facts = host["report"]["facts"]
        assert facts["system"].startswith("Debian") and facts["kernel"] and facts["memory"]["total"] and facts["disk"]["total"], facts
        assert host["report"]["forwarder"]["state"] == "running" and not host["notes"], host
    mgmt01.succeed("systemctl stop florete-agent.service")
    notes = lambda: [n["kind"] for n in table()["mgmt01"]["notes"]]
    wait_until(lambda: "forwarder" in notes(), lambda: f"its host reports it: {notes()}", timeout=30)
    assert "! its forwarder does not answer" in operator.succeed("florctl status ~/demo --via ssh || [ $? = 2 ]")
    mgmt01.succeed("systemctl start florete-agent.service")
    wait_until(lambda: not notes(), lambda: f"all is well again: {notes()}", timeout=30)

with subtest("Ann signs in with her password, by the client that the wiki has"):
    password = operator.succeed("cat ~/demo-ca/ann.password").strip()
    client = ursula.succeed("cd /var/lib/florete/needs/oidc-wiki/current; cat client-id; echo; cat client-secret").split()
    mgmt01.copy_from_host(operator.programs + "/sign_in.py", "/usr/local/lib/sign_in.py")
    sign_in = "runuser -u ann -- python3 /usr/local/lib/sign_in.py http://auth.demo.flor.rete http://wiki.demo.flor.rete/callback"
    assert mgmt01.succeed(f"{sign_in} {' '.join(client)} ann@example.org '{password}'").strip() == "ann@example.org"
    mgmt01.fail(f"{sign_in} {' '.join(client)} ann@example.org 'not {password}'")

mgmt01.copy_from_host(operator.programs + "/traffic.py", "/usr/local/lib/scenarios/traffic.py")
mgmt01.succeed("systemd-run --quiet --collect --unit=traffic --uid=ann --property=RuntimeDirectory=traffic /usr/local/lib/scenarios/traffic.py /run/traffic/out.json http://wiki.demo.flor.rete/")
mgmt01.wait_for_file("/run/traffic/out.json")
requests = lambda: json.loads(mgmt01.succeed("cat /run/traffic/out.json"))

with subtest("another root is trusted too; a lifetime later it signs; another one later the old root goes"):
    for heading, roots in [("First: trust another root too", 2), ("A lifetime later: sign by the new one", 2), ("Another lifetime later: the old one goes", 1)]:
        typed(heading)
        wait_until(lambda: all(len(manifest(host)["trust"]["roots"]) == roots for host in hosts), lambda: f"every host trusts {roots}", timeout=60)
        renewed()
        renewed()
    for host in hosts:
        host.succeed(f"openssl verify -CAfile {ROOT}/bundle.pem -untrusted {ROOT}/svid.pem -partial_chain {ROOT}/svid.pem")
    old = operator.succeed("sed -n 2p ~/demo-ca/ca.crt").strip()
    for host in hosts:
        host.fail(f"grep -rF '{old}' {STATE}/needs/*/current/ {STATE}/documents/current/")

with subtest("no request failed meanwhile, and every command of the page was typed"):
    done = requests()
    assert done["requests"] > 100 and not done["failed"], done
    print(f"       {done['requests']} requests, none failed")
    assert not blocks, blocks.keys()
