"""The page for plain Linux, typed as it stands, makes a cluster of three hosts from nothing."""
# minutes: 8
# operator: docs/tutorial/three-machines.md

# What the page leaves out: sign-in for the wiki, with a file of users.
SIGN_IN = r"""
cat > providers.nix <<END
{
  cert.hosts = [ "drhorrible" ];
  config.hosts = [ "drhorrible" ];
  oidc = { hosts = [ "drhorrible" ]; issuer = "http://auth.demo.flor.rete"; };
}
END
cat > services/wiki.nix <<END
{
  host = "ursula";
  port = 8080;
  listenPort = 80;
  user = "wiki";
  roles = [ "oidc-client" ];
  sso = { mode = "oidc"; restart = "wiki.service"; redirectURIs = [ "http://wiki.demo.flor.rete/callback" ]; };
}
END
echo '{ host = "drhorrible"; port = 5556; listenPort = 80; }' > services/auth.nix
echo '{ services = [ "auth" ]; }' > roles/oidc-client.nix
echo '{ services = [ "auth" "wiki" ]; }' > roles/reader.nix
git add --all
git commit --quiet --message "sign-in"
umask 077
cat > ~/demo-ca/users.hujson <<END
[
  {
    "email": "ann@example.org",
    "username": "ann",
    "userID": "ann-1",
    "hash": "$(openssl rand -base64 15 | tee ~/demo-ca/ann.password | htpasswd -BinC 10 '' | cut -d : -f 2)",
  },
]
END
ssh root@drhorrible mkdir -p -m 700 /var/lib/florete-provider/oidc
ssh root@drhorrible 'umask 077; cat > /var/lib/florete-provider/oidc/users.hujson' < ~/demo-ca/users.hujson
florctl publish --key ~/demo-ca/signing.key --via ssh
florctl deploy drhorrible ursula --via ssh
"""


def typed(heading, patience=0):
    """Types what is below a heading. Where the page says to see something, that may take a moment."""
    out = ""
    for block in blocks.pop(heading):
        # What differs from an operator's: where Florete is from, and how patient one is.
        block = block.replace("florctl init", f"florctl init --florete {operator.florete}")
        end = time.monotonic() + patience
        while True:
            try:
                out += operator.succeed(block)
                break
            except AssertionError:
                if time.monotonic() > end:
                    raise
                time.sleep(1)
    return out


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

with subtest("accounts, and the flake"):
    for heading in ("1. Make the accounts", "2. Describe the cluster"):
        typed(heading)

with subtest("the providers are installed, one certificate is signed, documents are published, and the other hosts deployed"):
    typed("3. Start the providers")
    drhorrible.wait_for_file("/var/lib/florete-provider/cert/issuing.csr")
    typed("4. Sign its certificate and publish")
    typed("5. Install the other hosts")
    typed("6. Start the wiki")

with subtest("it works"):
    began = time.monotonic()
    said = typed("7. See that it works", patience=120)
    assert "welcome" in said and '"versions"' in said, said
    print(f"       {time.monotonic() - began:.0f} s later")
    mgmt01.fail("curl --silent --fail --max-time 5 http://wiki.demo.flor.rete/")
    mgmt01.fail("curl --silent --fail --max-time 5 http://florete-control.drhorrible.demo.flor.rete/v1/versions")

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
    wait_until(lambda: "forwarder" in notes(), lambda: f"its host reports it: {notes()}")
    assert "! its forwarder does not answer" in operator.succeed("florctl status ~/demo --via ssh || [ $? = 2 ]")
    mgmt01.succeed("systemctl start florete-agent.service")
    wait_until(lambda: not notes(), lambda: f"all is well again: {notes()}")
    drhorrible.succeed("systemctl stop florete-provider-config.service")
    assert "! florete-provider-config.service is inactive (dead), and hosts cannot report to it" in operator.succeed("florctl status ~/demo --via ssh || [ $? = 2 ]")
    drhorrible.succeed("systemctl start florete-provider-config.service")
    wait_until(lambda: not table()["drhorrible"]["notes"], lambda: f"its unit runs again: {table()['drhorrible']['notes']}")

with subtest("Ann signs in with her password, by the client that the wiki has"):
    operator.succeed(SIGN_IN)
    ursula.wait_for_file(f"{STATE}/needs/oidc-wiki/current/client-secret")
    password = operator.succeed("cat ~/demo-ca/ann.password").strip()
    client = ursula.succeed(f"cd {STATE}/needs/oidc-wiki/current; cat client-id; echo; cat client-secret").split()
    mgmt01.wait_until_succeeds("runuser -u ann -- curl --silent --fail --max-time 5 http://auth.demo.flor.rete/.well-known/openid-configuration | grep 'http://auth.demo.flor.rete'")
    mgmt01.copy_from_host(operator.programs + "/sign_in.py", "/usr/local/lib/sign_in.py")
    sign_in = "runuser -u ann -- python3 /usr/local/lib/sign_in.py http://auth.demo.flor.rete http://wiki.demo.flor.rete/callback"
    assert mgmt01.succeed(f"{sign_in} {' '.join(client)} ann@example.org '{password}'").strip() == "ann@example.org"
    mgmt01.fail(f"{sign_in} {' '.join(client)} ann@example.org 'not {password}'")

assert not blocks, f"of the page, not typed: {blocks.keys()}"
