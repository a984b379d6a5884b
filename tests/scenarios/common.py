# Put before every scenario. Uses of the NixOS test driver: machines by name, subtest.
# Of the hosts: the command `deploy REVISION`, the services
# outline, wiki and metrics, and the programs in PROGRAMS.
import json
import time

PROGRAMS = "/usr/local/lib/scenarios"
STATE = "/var/lib/florete"
PROVIDER = "/var/lib/florete-provider"
HUNG = 900  # seconds; whoever waits longer waits in vain, however busy the machine is
# Whether this is the newest systemd that scenarios run on. On an older one a scenario leaves out what
# does not depend on systemd; NixOS has but one.
newest = globals().get("newest", True)
# The revision in which all hosts are at work already: in a cluster that several scenarios have, one
# after another.
at_work = globals().get("at_work", "")


def everywhere(do, hosts=None):
    """Does something on all hosts: at once where the driver can, which the one of NixOS cannot."""
    return list(globals().get("at_once", map)(do, hosts or machines))


def start_all():
    """Hosts of NixOS are asked beforehand whether they may reboot."""
    for host in machines:
        host.start(allow_reboot=True)


def deploy(revision, hosts=None):
    everywhere(lambda m: m.succeed(f"deploy {revision}"), hosts)


def needs(host):
    """What activation says of each need of a host."""
    each = r"for need in *; do printf '\036%s\036' $need; cat $need/state.json || true; done"
    shown = host.succeed(f"cat /etc/florete/documents/manifest.json && {{ cd {STATE}/needs && {each}; true; }} 2>/dev/null")
    manifest, *kept = shown.split("\x1e")
    states = dict(zip(kept[::2], kept[1::2], strict=True))
    return {need["id"]: json.loads(states.get(need["id"]) or '{"state": "waiting"}') for need in json.loads(manifest)["needs"]}


def wait_until(holds, what, timeout=HUNG):
    """Waits until holds() does; what() says it in words. Only what time itself decides has a
    timeout of its own. The seconds that it took are returned."""
    began = checked = time.monotonic()
    while not holds():
        assert time.monotonic() < began + timeout, f"waited {timeout} s in vain until {what()}"
        pause(time.monotonic() - checked)
        checked = time.monotonic()
    return time.monotonic() - began


def fulfilled(host):
    return all(need["state"] == "fulfilled" for need in needs(host).values())


def wait_fulfilled(hosts=None, timeout=HUNG):
    for host in hosts or machines:
        wait_until(lambda: fulfilled(host), lambda: f"{host.name} has what it needs: {needs(host)}", timeout)


def reaches(host, service, domain="demo.flor"):
    """Does an unmodified program of a host reach a service by its name?"""
    code, out = host.execute(f"curl --silent --show-error --fail --max-time 5 http://{service}.{domain}.rete/")
    return code == 0 and out == f"{service}\n"


def wait_reaches(host, service, timeout=HUNG, domain="demo.flor"):
    wait_until(lambda: reaches(host, service, domain), lambda: f"{host.name} reaches {service}", timeout)


def wait_started(host, unit):
    """Waits until a unit is active that something else starts, when it is time."""
    host.wait_until_succeeds(f"systemctl is-active {unit}")


def lose(host, need):
    """The host loses what it has of a need, and requests that again. Activation may be writing there."""
    host.succeed(f"mv {STATE}/needs/{need} {STATE}/lost && rm -r {STATE}/lost", "systemctl restart florete-activate.service")


def publish(revision):
    """The config provider now serves what florctl publish made of a revision."""
    drhorrible.succeed(f"flor-provider import < /srv/published/{revision}.json")


def sign_issuer(root="/srv/operator"):
    """The operator's one act for a new provider: sign its request for an issuing
    certificate with a root's key, which stays where it is."""
    drhorrible.wait_for_file("/var/lib/florete-provider/cert/issuing.csr")
    request = drhorrible.succeed("cat /var/lib/florete-provider/cert/issuing.csr")
    certificate = mgmt01.succeed(f"cd {root}; florctl ca sign <<'END'\n{request}END")
    drhorrible.succeed(f"flor-provider install-cert <<'END'\n{certificate}END")


def certify_store(hosts):
    """The operator's CA of the store, and what it issues to each provider host."""
    mgmt01.succeed("florctl store init --trust-domain demo.flor --out /root/store")
    for host in hosts:
        issue_store(host)


def issue_store(host):
    """Certificates of the store for a host, which replace those that it has."""
    address = host.succeed("ip -4 -o addr show scope global | awk '{print $4}' | cut -d/ -f1 | head -1").strip()
    mgmt01.succeed(f"cd /root/store && florctl store issue {host.name} --address {address} --out {host.name}")
    files = mgmt01.succeed(f"tar -C /root/store/{host.name} -c . | base64 -w0").strip()
    host.succeed(f"mkdir -p /etc/florete/store && echo {files} | base64 -d | tar -x -C /etc/florete/store --no-same-owner")


def sign_replica(host):
    """Each replica has an issuing key of its own."""
    host.wait_for_file(f"{PROVIDER}/cert/issuing.csr")
    request = host.succeed(f"cat {PROVIDER}/cert/issuing.csr")
    certificate = mgmt01.succeed(f"cd /srv/operator; florctl ca sign <<'END'\n{request}END")
    host.succeed(f"flor-provider install-cert <<'END'\n{certificate}END")


def bring_up(revision="base", hosts=None):
    """From hosts that are off to a cluster at work: drhorrible has its providers, ursula these services."""
    if at_work != revision:
        for host in hosts or machines:
            host.start(allow_reboot=True)
        deploy(revision, hosts)
        sign_issuer()
    wait_fulfilled(hosts)
    for host in hosts or machines:
        wait_started(host, "florete-agent.service")
    for service in ("outline", "wiki"):
        wait_reaches(mgmt01, service)


# Of a host: its revision, its addresses and packet filters, and names of files, units and accounts.
# Accounts of the product stay when a revision goes that needs them.
TRACES = r"""
readlink /etc/florete/documents
ip -brief address show; ip route; nft list tables; cut -d: -f1 /etc/passwd | grep -v ^florete
sha256sum /etc/hosts /etc/resolv.conf /etc/florete/*.hujson /etc/ssh/* 2>/dev/null || true
findmnt --list --noheadings --output TARGET | grep -v ^/run/credentials/
find /run/systemd/{system,transient} /etc/systemd/system -not -type d 2>/dev/null || true
find /root /home /opt /srv /tmp /usr/local/lib -maxdepth 1 -not -name 'systemd-private-*'
"""


def traces():
    """What scenarios could leave on hosts, in lines."""
    return {host.name: lines.splitlines() for host, lines in zip(machines, everywhere(lambda m: m.succeed(TRACES)), strict=True)}


def wait_well():
    for host in machines:
        host.wait_until_succeeds("flor doctor")


def as_found(found):
    """Fails where a scenario left a trace that was not found before, or a host that is not well."""

    def left():
        now = traces()
        return {name: changes for name in found if (changes := sorted(set(found[name]) ^ set(now[name])))}

    wait_well()
    wait_until(lambda: not left(), lambda: f"nothing is left on hosts: {left()}", timeout=60)


def manifest(host):
    """That is in force on a host, wherever it came from."""
    return json.loads(host.succeed(f"cat {STATE}/documents/current/manifest.json"))


class Traffic:
    """Requests from a host to services, by programs that know nothing of Florete."""

    def __init__(self, host, *services, domain="demo.flor", pause=0.05):
        self.host, self.unit = host, "traffic-" + "-".join(services)
        self.out = f"/run/{self.unit}.json"
        urls = [f"http://{s}.{domain}.rete/" for s in services]
        host.succeed(f"systemd-run --quiet --collect --unit={self.unit} {PROGRAMS}/traffic.py {self.out} {pause} {' '.join(urls)}")
        host.wait_for_file(self.out)

    def so_far(self):
        """{"requests": how many, "failed": [[when it began, what], …], "longest": the slowest answer}"""
        return json.loads(self.host.succeed(f"cat {self.out}"))

    def end(self):
        """Twenty requests later, so that however quick the scenario was, they saw its end."""
        before = self.so_far()["requests"]
        wait_until(lambda: self.so_far()["requests"] >= before + 20, lambda: f"requests go on: {self.so_far()}")
        self.host.succeed(f"systemctl stop {self.unit}")
        return ended(self)


class Held:
    """One connection from a host to a service, used all the time."""

    def __init__(self, host, service):
        self.host, self.unit, self.out = host, f"held-{service}", f"/run/held-{service}.json"
        host.succeed(f"systemd-run --quiet --collect --unit={self.unit} {PROGRAMS}/hold.py {self.out} {service}.demo.flor.rete 80")
        host.wait_for_file(self.out)

    def so_far(self):
        """{"requests", "error", "longest", "answered", "ended"}"""
        return json.loads(self.host.succeed(f"cat {self.out}"))

    def end(self):
        self.host.execute(f"systemctl stop {self.unit}")
        return ended(self)


def ended(program):
    """The last result of a program that was stopped, which leaves nothing."""
    result = program.so_far()
    program.host.succeed(f"rm -f {program.out}*")
    return result


def seconds_of(host):
    return float(host.succeed("date +%s.%N"))


def serial(host, need):
    """Of the certificate in force."""
    return host.succeed(f"openssl x509 -noout -serial -in {STATE}/needs/{need}/current/svid.pem").strip()


def decisions(documents=True):
    """How many requests the provider has decided, with or without those for newer documents, which
    any host may make at any time while there are some."""
    rows = drhorrible.succeed("flor-provider audit --json --settings /etc/florete/provider.hujson").splitlines()
    return sum('"decision":"changed"' not in row and (documents or '"need":"config-documents"' not in row) for row in rows)
