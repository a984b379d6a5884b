"""flor doctor finds nothing wrong with healthy hosts, finds what is hurt, and each command that it names cures it."""
# own kernel: raishan
import re

raishan.start(allow_reboot=True)  # which takes longest
raishan.wait_for_unit("multi-user.target")
bring_up("base")


def examine(host):
    """{check: [{"problem", "fix"}]} of what is wrong with a host."""
    report = json.loads(host.execute("flor doctor --json")[1])
    return {c["name"]: c["findings"] for c in report["checks"] if c["findings"]}


def carry_out(fix, host):
    """Runs the command of a finding, on the host that it names: "on drhorrible: …", "on 10.77.0.1: …"."""
    named = re.match("on ([^:]+): (.*)", fix)
    if named:
        at = {m.name: m for m in machines} | {json.loads(m.succeed("ip -json address show eth1"))[0]["addr_info"][0]["local"]: m for m in machines}
        host, fix = at[named[1]], named[2]
    host.succeed(fix)


def cure(host, check, hurt, hurt_host=None):
    """Hurts a host, or another that it needs; there is a finding, and what it names sets it right."""
    (hurt_host or host).succeed(hurt)
    end = time.time() + 20
    found = examine(host)
    while check not in found and time.time() < end:
        found = examine(host)
    assert check in found, found
    for finding in found[check]:
        print(f"       {finding['problem'][:110]}\n         {finding['fix'][:150]}")
        carry_out(finding["fix"], host)
    wait_until(lambda: not examine(host), lambda: f"{host.name} is well: {examine(host)}", timeout=60)


with subtest("kernel: UDP buffers too small for QUIC"):
    cure(raishan, "kernel", "sysctl -w net.core.rmem_max=212992 net.core.wmem_max=212992")

with subtest("nothing is wrong with hosts that nobody hurt"):
    for host in machines:
        wait_until(lambda: not examine(host), lambda: f"{host.name} is well: {examine(host)}", timeout=20)

NEEDS = f"{STATE}/needs"
with subtest("permissions: a key that all can read, a directory that all can write, a file of another account"):
    cure(ursula, "permissions", f"chmod 644 $(realpath {NEEDS}/cert-node/current/key.pem)")
    cure(ursula, "permissions", f"chmod 777 {NEEDS}")
    cure(ursula, "permissions", f"chown alice $(realpath {NEEDS}/oidc-outline/current/client-secret)")
    cure(ursula, "permissions", "chmod 644 /etc/ssh/ssh_host_ed25519_key")

with subtest("units: stopped, failed"):
    cure(ursula, "units", "systemctl stop florete-agent.service")
    cure(ursula, "units", "systemctl stop florete-activate.service")
    ursula.succeed("mkdir -p /run/systemd/system/florete-agent.service.d", "printf '[Service]\nRestart=no\n' > /run/systemd/system/florete-agent.service.d/once.conf", "systemctl daemon-reload")
    cure(ursula, "units", "systemctl kill --signal=KILL florete-agent.service")

with subtest("needs, identity, documents: lost from the disk"):
    cure(ursula, "identity", f"systemctl stop florete-activate.service; rm -r {NEEDS}/cert-service-wiki/gen-*")
    cure(ursula, "documents", f"systemctl stop florete-activate.service; rm -r {STATE}/documents")

with subtest("names: one that leads past its local listener, and none at all"):
    cure(mgmt01, "names", "sed -i '1i 127.0.0.9 wiki.demo.flor.rete' /etc/hosts")
    if mgmt01.execute("systemctl cat florete-names.service")[0] == 0:  # NixOS writes them
        cure(mgmt01, "names", "systemctl stop florete-names.service; sed -i '/rete$/d' /etc/hosts")

with subtest("providers: stopped; shut off by a packet filter, over TCP"):
    cure(ursula, "providers", "systemctl stop florete-provider.service", drhorrible)
    port = manifest(ursula)["providers"]["drhorrible"]["address"].rpartition(":")[2]
    FILTER = "nft add table inet filter; nft add chain inet filter input '{ type filter hook input priority 0; }'"
    cure(ursula, "providers", f"{FILTER}; nft add rule inet filter input tcp dport {port} drop", drhorrible)

with subtest("forwarders: shut off by a packet filter, over UDP"):
    reach = {r["id"].rpartition("/")[2]: r["endpoints"][0] for r in manifest(mgmt01)["forwarder"]["reach"]}
    port = reach["wiki"].rpartition(":")[2]
    cure(mgmt01, "forwarders", f"{FILTER}; nft add rule inet filter input udp dport {port} drop", ursula)

with subtest("the cluster works as before"):
    for host in machines:
        wait_until(lambda: not examine(host), lambda: f"{host.name} is well: {examine(host)}", timeout=20)
    for host, service in [(mgmt01, "wiki"), (mgmt01, "outline"), (raishan, "outline")]:
        wait_reaches(host, service)
