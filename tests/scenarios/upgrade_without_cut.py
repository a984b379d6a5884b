"""Forwarders are upgraded three times in a row at both ends of a transfer and of requests: none fails."""
# common cluster: base

bring_up("base")
traffic = Traffic(mgmt01, "outline", "wiki")
held = Held(mgmt01, "wiki")
BOTH = (mgmt01, ursula)


def main_process(host):
    return int(host.succeed("systemctl show --property=MainPID --value florete-agent"))


def forwarders(host):
    """How many processes there are: the newest, and those that drain."""
    return len(host.execute("pgrep -u florete -f 'flor agent run'")[1].split())


def upgrade(host):
    """A program at another path, as a release has: the unit leads to it after a reload of systemd."""
    before = main_process(host)
    host.succeed("install -D /usr/local/bin/flor /opt/release-$(date +%s%N)/flor")
    newest = host.succeed("ls -td /opt/release-* | head -n 1").strip()
    host.succeed("mkdir -p /run/systemd/system/florete-agent.service.d")
    flags = f"agent reload --state={STATE} --socket=/run/florete/agent/status.sock"
    host.succeed(f"printf '[Service]\\nExecReload=\\nExecReload={newest}/flor {flags}\\n' > /run/systemd/system/florete-agent.service.d/release.conf")
    host.succeed("systemctl daemon-reload", "systemctl reload florete-agent")
    after = main_process(host)
    assert after != before, after
    assert host.succeed(f"readlink /proc/{after}/exe").strip() == f"{newest}/flor"


with subtest("a transfer of minutes begins"):
    transfer = Held(mgmt01, "outline")

with subtest("three upgrades in a row at each end, and nothing fails"):
    for _ in range(3):
        for host in BOTH:
            before = traffic.so_far()["requests"]
            upgrade(host)
            wait_until(lambda: traffic.so_far()["requests"] >= before + 40, lambda: f"requests go on: {traffic.so_far()}")
            assert not traffic.so_far()["failed"], traffic.so_far()
            for connection in (held, transfer):
                assert not connection.so_far()["error"], connection.so_far()
    wait_until(lambda: held.so_far()["requests"] > 50, lambda: f"the connection goes on: {held.so_far()}")
    print(f"       {traffic.so_far()['requests']} requests, none failed; the slowest answer took {held.so_far()['longest']:.1f} s")

with subtest("systemd supervises the newest process, and journald has no complaint"):
    for host in BOTH:
        assert host.succeed("systemctl is-active florete-agent").strip() == "active"
        log = host.succeed("journalctl --unit=florete-agent --no-pager")
        assert "not our child" not in log and "reception only permitted" not in log, log

with subtest("a release that cannot serve changes nothing"):
    before = main_process(ursula)
    ursula.succeed("printf '[Service]\\nExecReload=\\nExecReload=/usr/local/bin/flor agent reload --state=/nowhere --socket=/run/florete/agent/status.sock\\n' > /run/systemd/system/florete-agent.service.d/release.conf", "systemctl daemon-reload")
    code, said = ursula.execute("systemctl reload florete-agent")
    assert code != 0, said
    assert main_process(ursula) == before
    wait_reaches(mgmt01, "wiki")

with subtest("what has ended leaves no process"):
    held.end()
    transfer.end()
    result = traffic.end()
    assert not result["failed"], result
    for host in BOTH:
        wait_until(lambda: forwarders(host) == 1, lambda: f"one forwarder: {host.succeed('systemctl status florete-agent')}")

with subtest("stopped, it ends altogether"):
    ursula.succeed("systemctl stop florete-agent")
    assert forwarders(ursula) == 0, forwarders(ursula)

for host in BOTH:
    host.succeed("rm -r /run/systemd/system/florete-agent.service.d /opt/release-*; systemctl daemon-reload; systemctl restart florete-agent")
