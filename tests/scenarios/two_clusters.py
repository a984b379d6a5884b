"""A host in two clusters runs both side by side: neither sees documents, state or keys of the other, and one comes, stops and goes while the other works on."""
# minutes: 4
# bundles: ursula/base.tar.gz ursula/blue.tar.gz ursula/undeclared.tar.gz ursula/undeclared.deb drhorrible/blue.deb

BLUE = "blue.flor"
shared = [drhorrible, ursula]


def unpack(cluster):
    """A bundle's install.sh, as it lies on ursula."""
    ursula.succeed(f"mkdir /root/{cluster}", f"tar xzf /root/bundles/{cluster}.tar.gz -C /root/{cluster}")
    return ursula.succeed(f"ls /root/{cluster}/*/install.sh").strip()


def wait_demo():
    for host, service in [(mgmt01, "wiki"), (ursula, "metrics")]:
        wait_reaches(host, service)


def wait_blue():
    for host, service in [(drhorrible, "ledger"), (ursula, "press")]:
        wait_reaches(host, service, domain=BLUE)


def no_failure(traffic):
    result = traffic.end()
    assert not result["failed"], result
    print(f"       {result['requests']} requests of the other cluster, none failed")


def wrong(host, flor):
    """What doctor finds."""
    return [f for c in json.loads(host.execute(f"{flor} doctor --json")[1])["checks"] for f in c["findings"]]


def wait_well(host, flor):
    wait_until(lambda: not wrong(host, flor), lambda: f"{flor} on {host.name} finds nothing wrong: {wrong(host, flor)}")


def nothing_at(host, places):
    assert host.execute(f"ls -d {places}")[1] == "", f"{host.name} still has some of {places}"


def state(host, instance):
    """What an instance has on a host, but for programs, once nothing is under way any more."""
    wait_well(host, "flor" if instance == "florete" else "flor_blue")
    return host.succeed(f"find -L /etc/{instance} /var/lib/{instance} -type f ! -name state.json -exec sha256sum {{}} + | sort")


for host in (drhorrible, ursula, mgmt01):
    host.start(allow_reboot=True)
deploy("base", [drhorrible, mgmt01])
sign_issuer()
for host, service, port in [(ursula, "ledger", 4701), (drhorrible, "press", 4702)]:
    host.succeed(f"systemd-run --quiet --unit={service} {PROGRAMS}/answer.py {port} {service}")
# Ursula as its distribution made it.
ursula.succeed("umount /usr/local/bin", "rm -f /etc/sysusers.d/florete.conf", "! command -v flor")
demo, blue, undeclared = unpack("base"), unpack("blue"), unpack("undeclared")

with subtest("a bundle that would take the first cluster's place is refused, and so is a package"):
    ursula.succeed(demo)
    wait_demo()
    before = state(ursula, "florete")
    for attempt in (undeclared, f"{undeclared} --remove --purge", "dpkg --install /root/bundles/undeclared.deb"):
        code, printed = ursula.execute(f"{attempt} 2>&1")
        assert code != 0 and "cluster demo (demo.flor) is here as florete, and so would be blue (blue.flor): declare hosts.<name>.instance" in printed, (code, printed)
    assert state(ursula, "florete") == before
    wait_demo()

with subtest("the second is installed beside it, its provider beside the first's; both are reached by name, side by side"):
    traffic = Traffic(mgmt01, "wiki")
    drhorrible.succeed(
        "dpkg --install /root/bundles/blue.deb",
        "mkdir -p /etc/florete_blue",
        """cat > /etc/florete_blue/provider.hujson <<'END'
{
  "state": "/var/lib/florete_blue-provider",
  "activation": "/var/lib/florete_blue",
  "cert": {"issuingCertificate": "/var/lib/florete_blue-provider/cert/issuing.crt"},
}
END""",
        "systemctl start florete_blue-provider-cert.service",
    )
    ursula.succeed(blue)
    drhorrible.wait_for_file("/var/lib/florete_blue-provider/cert/issuing.csr")
    request = drhorrible.succeed("cat /var/lib/florete_blue-provider/cert/issuing.csr")
    certificate = mgmt01.succeed(f"cd /srv/operator/blue; florctl ca sign <<'END'\n{request}END")
    drhorrible.succeed(f"flor-provider_blue install-cert <<'END'\n{certificate}END")
    wait_blue()
    wait_demo()
    mgmt01.fail("getent hosts ledger.blue.flor.rete")
    no_failure(traffic)

with subtest("doctor finds nothing wrong with either, and what is hurt in the one it is asked about"):
    for host in shared:
        for flor in ("flor", "flor_blue"):
            wait_well(host, flor)
    ursula.succeed("systemctl stop florete_blue-activate.service")
    for finding in (found := wrong(ursula, "flor_blue")):
        ursula.succeed(finding["fix"])
    assert found and not wrong(ursula, "flor"), found
    wait_well(ursula, "flor_blue")

with subtest("neither has anything of the other in documents or state"):
    for host in shared:
        for instance, own, other in [("florete", "demo.flor", BLUE), ("florete_blue", BLUE, "demo.flor")]:
            places = f"/etc/{instance} /var/lib/{instance} /var/lib/{instance}-provider /run/{instance} /etc/systemd/system/{instance}-*"
            host.succeed(f"grep -RqsF {own} {places}")
            host.fail(f"grep -RqsF {other} {places}")

with subtest("the account of one reads its own keys, not those of the other"):
    for host in shared:
        for account, other in [("florete", "florete_blue"), ("florete_blue", "florete")]:
            host.succeed(f"runuser -u {account} -- head -c1 /var/lib/{account}/needs/cert-node/current/key.pem")
            host.fail(f"runuser -u {account} -- head -c1 /var/lib/{other}/needs/cert-node/current/key.pem")

with subtest("the second stops, goes with all it had and comes again: the first works on"):
    before, traffic = state(ursula, "florete"), Traffic(mgmt01, "wiki")
    ursula.succeed("systemctl stop 'florete_blue-*'")
    ursula.fail("systemctl is-active florete_blue-agent.service")
    ursula.succeed("florete_blue-install --remove --purge")
    nothing_at(ursula, "/var/lib/florete_blue /etc/florete_blue/documents /usr/local/lib/florete_blue /usr/local/bin/*_blue /etc/*/*florete_blue*")
    assert not ursula.succeed("systemctl list-units --no-legend 'florete_blue-*'") and "blue.flor" not in ursula.succeed("cat /etc/hosts")
    no_failure(traffic)
    assert state(ursula, "florete") == before
    ursula.succeed(blue)
    wait_blue()

with subtest("the first goes likewise: the second works on, and is not taken for it"):
    before, traffic = state(ursula, "florete_blue"), Traffic(drhorrible, "ledger", domain=BLUE)
    ursula.succeed("florete-install --remove --purge")
    assert not ursula.succeed("systemctl list-units --no-legend 'florete-*'") and "demo.flor" not in ursula.succeed("cat /etc/hosts")
    code, printed = ursula.execute(f"{undeclared} 2>&1")
    assert code != 0 and "cluster blue (blue.flor) is here as florete_blue, and this bundle has it as florete" in printed, (code, printed)
    ursula.succeed(demo)
    wait_demo()
    no_failure(traffic)
    assert state(ursula, "florete_blue") == before
    ursula.succeed("systemctl --failed --no-legend | (! grep .)")

with subtest("the second's package goes, all but what its provider made: the first has nothing to mend"):
    drhorrible.succeed("dpkg --purge florete-blue", "test -s /var/lib/florete_blue-provider/cert/issuing.key")
    nothing_at(drhorrible, "/usr/bin/*_blue /usr/lib/florete_blue /usr/lib/*/*florete_blue* /var/lib/florete_blue")
    assert not drhorrible.succeed("systemctl list-units --no-legend 'florete_blue-*'")
    wait_well(drhorrible, "flor")
    drhorrible.succeed("systemctl --failed --no-legend | (! grep .)")
