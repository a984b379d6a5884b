"""flor doctor finds nothing wrong with healthy hosts, finds what is hurt, and each command that it names cures it."""
# minutes: 3
import re

bring_up("base")


def examine(host):
    """{check: [{"problem", "fix"}]} of what is wrong with a host."""
    report = json.loads(host.execute("flor doctor --json")[1])
    return {c["name"]: c["findings"] for c in report["checks"] if c["findings"]}


def cures(host):
    """[(host, finding, command)]: what is wrong with a host, or, where its doctor sends to another's, with that one."""
    found = []
    for finding in [f for findings in examine(host).values() for f in findings]:
        elsewhere = re.match("on ([^:]+): flor doctor", finding.get("do", ""))
        if elsewhere:
            found += cures(named(elsewhere[1]))
        found.append((host, finding, finding.get("fix")))
    return found


def named(name):
    """A host by its name or address."""
    at = {m.name: m for m in machines} | {json.loads(m.succeed("ip -json address show eth1"))[0]["addr_info"][0]["local"]: m for m in machines}
    return at[name]


def cure(host, check, hurt, hurt_host=None, person=None, says=""):
    """Hurts a host, or another that it needs: there is a finding. Its commands cure it, run here and nothing else;
    or, where a person must act, its text says what, and what the person does cures it."""
    (hurt_host or host).succeed(hurt)
    wait_until(lambda: check in examine(host), lambda: f"{check} of {host.name}: {examine(host)}")
    done = set()
    for at, finding, fix in cures(host):
        print(f"       {at.name}: {finding['problem'][:110]}\n         {(fix or 'DO: ' + finding['do'])[:150]}")
        if fix and (at.name, fix) not in done:
            done.add((at.name, fix))
            at.succeed(fix)
    if person:
        texts = lambda: [f["problem"] + " " + f.get("do", "") for _, f, fix in cures(host) if not fix]
        wait_until(lambda: any(re.search(says, text) for text in texts()), lambda: f"doctor says {says!r}: {texts()}")
        person()
    wait_until(lambda: not examine(host), lambda: f"{host.name} is well: {examine(host)}")


with subtest("nothing is wrong with hosts that nobody hurt"):
    for host in machines:
        wait_until(lambda: not examine(host), lambda: f"{host.name} is well: {examine(host)}")

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
    if mgmt01.execute("systemctl cat florete-hosts-file.service")[0] == 0:  # NixOS writes them
        cure(mgmt01, "names", "systemctl stop florete-hosts-file.service; sed -i '/rete$/d' /etc/hosts")

with subtest("providers: stopped; shut off by a packet filter, over TCP, in a table of any name"):
    cure(ursula, "providers", "systemctl stop florete-provider-cert.service", drhorrible)
    port = manifest(ursula)["providers"]["drhorrible"]["cert"]["addresses"][0].rpartition(":")[2]
    FILTER = "nft add table ip mine; nft add chain ip mine front '{ type filter hook input priority 0; }'; nft add rule ip mine front"
    OPEN = "nft delete table ip mine"
    cure(ursula, "providers", f"{FILTER} tcp dport {port} drop", drhorrible, person=lambda: drhorrible.succeed(OPEN), says=f"let TCP port {port} in")

with subtest("forwarders: shut off by a packet filter, over UDP; their port taken by another program"):
    reach = {r["id"].rpartition("/")[2]: r["endpoints"][0][0] for r in manifest(mgmt01)["forwarder"]["reach"]}
    port = reach["wiki"].rpartition(":")[2]
    cure(mgmt01, "forwarders", f"{FILTER} udp dport {port} drop", ursula, person=lambda: ursula.succeed(OPEN), says=f"let UDP port {port} in")
    TAKE = f"systemctl stop florete-agent.service; systemd-run --quiet --collect --unit=squatter python3 -c 'import socket, time; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.bind((\"0.0.0.0\", {port})); time.sleep(3600)'; sleep 1; systemctl start --no-block florete-agent.service"
    cure(ursula, "agent", TAKE, person=lambda: ursula.succeed("systemctl stop squatter"), says="stop what has the address")

with subtest("upstreams: the program behind a service is down"):
    cure(ursula, "upstreams", "systemctl stop wiki.service")

with subtest("accounts: that of a service is gone"):
    cure(ursula, "accounts", f"userdel --force outline; systemctl stop florete-activate.service; rm -r {NEEDS}/oidc-outline; systemctl start florete-activate.service")

with subtest("units: credentials that nobody gives, a timer that is off"):
    cure(ursula, "units", "systemctl stop florete-credentials.socket")
    cure(ursula, "units", "systemctl disable --now florete-refresh.timer")

with subtest("the provider: wrong settings, a users file that it cannot read, waiting for its certificate"):
    HUJSON = "/etc/florete/provider.hujson"
    BACK = f"mv /root/kept {HUJSON}; systemctl restart florete-provider-oidc.service"
    KEEP = f"cp -p {HUJSON} /root/kept"
    cure(drhorrible, "units", f"{KEEP}; echo '{{' > {HUJSON}; systemctl restart --no-block florete-provider-oidc.service", person=lambda: drhorrible.succeed(BACK), says="provider.hujson")
    USERS = f"{PROVIDER}/oidc/users.hujson"
    cure(drhorrible, "units", f"mv {USERS} /root/users; systemctl restart --no-block florete-provider-oidc.service",
         person=lambda: drhorrible.succeed(f"mv /root/users {USERS}"), says="users.hujson")
    CRT = f"{PROVIDER}/cert/issuing.crt"
    cure(drhorrible, "units", f"mv {CRT} /root/kept.crt; systemctl restart --no-block florete-provider-cert.service",
         person=lambda: drhorrible.succeed(f"mv /root/kept.crt {CRT}"), says="florctl ca sign")


def restored():
    """The database is back, without what its process did meanwhile; the audit log has that, so
    every host finds rows that are gone, sooner or later, and the operator knows why."""
    drhorrible.succeed(f"systemctl stop {CONFIG}; rm {STORE}/state.db* {STORE}/seal.key; mv /root/kept.db/* {STORE}; systemctl start {CONFIG}")
    ursula.succeed("flor refetch config-documents")
    wait_fulfilled()
    since = seconds_of(drhorrible)
    seen = lambda host: [w for w in json.loads(host.execute("flor witness --json")[1])if w["kind"] == "config" and w.get("fault") and w["seen"] > since]
    for host in machines:
        wait_until(lambda: host.succeed("flor witness --now") == "" and seen(host), lambda: f"{host.name} finds it: {host.execute('flor witness')}")
        host.succeed("flor witness accept drhorrible config --reason 'the database was away'; flor witness")


with subtest("needs: documents that nobody published"):
    STORE, CONFIG = f"{PROVIDER}/config", "florete-provider-config.service"
    drhorrible.succeed(f"systemctl stop {CONFIG}; mkdir /root/kept.db; mv {STORE}/state.db* {STORE}/seal.key /root/kept.db; systemctl start {CONFIG}")
    cure(ursula, "needs", "flor refetch config-documents", person=restored, says="florctl publish")

with subtest("disk: full, and read-only"):
    SMALL = f"systemctl stop 'florete-*'; cp -a {STATE} /root/state; mount -t tmpfs -o size=20m,mode=755 tmpfs {STATE}; cp -a /root/state/. {STATE}/; systemctl start florete-activate.service florete-agent.service florete-hosts-file.service"
    ursula.succeed(SMALL)
    cure(ursula, "disk", f"fallocate -l 15m {STATE}/filler", person=lambda: ursula.succeed(f"rm {STATE}/filler"), says="is full")
    # Activation holds its lock open, with which no file system becomes read-only.
    cure(ursula, "disk", f"systemctl stop florete-activate.service; mount -o remount,ro {STATE}; systemctl start --no-block florete-activate.service")

with subtest("the state belongs to another account"):
    cure(ursula, "permissions", f"chown -R nobody {STATE}")

with subtest("the SSH host key is not the one that the flake has"):
    KEY = "/etc/ssh/ssh_host_ed25519_key"
    cure(mgmt01, "identity", f"mkdir /root/key; cp -p {KEY}* /root/key; rm {KEY}*; ssh-keygen -q -t ed25519 -N '' -f {KEY}",
         person=lambda: mgmt01.succeed("cp -p /root/key/* /etc/ssh/"), says="in the flake: hosts.mgmt01.sshHostKey")

with subtest("the cluster works as before"):
    for host in machines:
        wait_until(lambda: not examine(host), lambda: f"{host.name} is well: {examine(host)}")
    for host, service in [(mgmt01, "wiki"), (mgmt01, "outline"), (raishan, "outline")]:
        wait_reaches(host, service)
