"""Five hosts boot from nothing and become a cluster, with one act of the operator."""
# systemd: every unit starts

with subtest("hosts without anything boot, and no unit waits for the network"):
    start_all()
    deploy("base")
    for host in machines:
        host.wait_for_unit("multi-user.target")
        host.wait_for_unit("florete-activate.service")

with subtest("while the provider has no issuing certificate, status lines say what waits for whom"):
    ursula.wait_until_succeeds("systemctl show --property=StatusText florete-activate.service | grep 'cert-node.*drhorrible'")
    ursula.fail("systemctl is-active florete-agent.service")
    ursula.fail("systemctl is-active florete-need-cert-node.target")

with subtest("journals have priorities, and no second time"):
    ursula.succeed("journalctl --priority=warning --unit=florete-activate.service | grep 'cert-node: attempt'")
    ursula.fail("journalctl --priority=warning --unit=florete-activate.service | grep 'documents: taken'")
    drhorrible.fail("journalctl --output=cat --unit='florete-*' | grep -E '^<|^(time=)?20[0-9][0-9]'")

with subtest("once the operator has signed the issuing certificate, every need of every host is fulfilled"):
    sign_issuer()
    wait_fulfilled()

with subtest("agents start by themselves when the identity is there"):
    for host in machines:
        wait_started(host, "florete-need-cert-node.target")
        wait_started(host, "florete-agent.service")

with subtest("outline has its credentials, and was started with them"):
    ursula.succeed(f"test $(stat --format=%U:%a {STATE}/needs/oidc-outline/current/client-secret) = outline:400")
    wait_started(ursula, "outline.service")

with subtest("unmodified programs reach what their host's roles give"):
    for host, service in [(mgmt01, "outline"), (mgmt01, "wiki"), (mgmt01, "metrics"), (raishan, "outline"), (laptop, "metrics")]:
        wait_reaches(host, service)
    laptop.wait_until_succeeds("runuser -u alice -- curl --silent --fail http://wiki.demo.flor.rete/ | grep wiki")

with subtest("and nothing else: not without a role, not as another account"):
    raishan.fail("grep wiki /etc/hosts")
    laptop.fail("curl --silent --fail --max-time 5 http://wiki.demo.flor.rete/")

with subtest("no unit has failed anywhere, and private keys never left their host"):
    keys = []
    for host in machines:
        assert host.succeed("systemctl --failed --no-legend") == ""
        keys.append(host.succeed(f"sha256sum < {STATE}/needs/cert-node/current/key.pem"))
    assert len(set(keys)) == len(machines)

with subtest("a reboot needs neither provider nor operator"):
    drhorrible.block()
    ursula.reboot()
    wait_started(ursula, "florete-agent.service")
    wait_reaches(mgmt01, "wiki")
