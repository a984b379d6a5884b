"""Processes have the certificates of their services by the SPIFFE Workload API, and units of the system act as services: by account or whole control group, and no unit of a user. They have tokens there too, which OIDC discovery verifies."""
# systemd: the sandbox of the service, and control groups of units
# common cluster: base

import base64
import re
import shlex

OUTLINE, BATCH = "spiffe://demo.flor/service/outline", "spiffe://demo.flor/service/batch"
SOCKET = "/run/florete/workload.sock"
HEADERS = ("content-type: application/grpc", "te: trailers", "workload.spiffe.io: true")


def fetch(headers=HEADERS, first="--first"):
    """FetchX509SVID, up to the first certificate."""
    return f"{PROGRAMS}/stream.py {SOCKET} FetchX509SVID {first} {shlex.join(headers)}"


TOKEN = re.compile(r"ey[\w-]+\.ey[\w-]+\.[\w-]{86}")


def fetch_token(audience):
    """FetchJWTSVID: a message with the audience as field 1."""
    message = f"\\012\\{len(audience):03o}{audience}"
    return (
        f"printf '\\0\\0\\0\\0\\{len(audience) + 2:03o}{message}' | curl --silent --http2-prior-knowledge --max-time {HUNG} --unix-socket {SOCKET} "
        + " ".join(f"--header '{h}'" for h in HEADERS)
        + " --data-binary @- --dump-header - http://localhost/SpiffeWorkloadAPI/FetchJWTSVID | tr --complement --delete '[:print:]\\n'"
    )


def part_of(token, i):
    text = token.split(".")[i]
    return json.loads(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))


def wait_refused(fetched, status=7):
    """Until it is refused, which an older curl does not always print; it is granted in no case."""

    def refused():
        out = fetched()
        assert "spiffe://" not in out, out
        return f"grpc-status: {status}" in out

    wait_until(refused, lambda: f"refused: {fetched()}")


def as_account(host, account, command):
    return host.execute(f"runuser -u {account} -- sh -c {shlex.quote(command)}")[1]


def as_unit(host, unit, command, more=""):
    """What a service of systemd of this name prints."""
    return host.succeed(f"systemd-run --quiet --collect --pipe --wait --unit={unit} {more} sh -c {shlex.quote(command + ' || true')}")


def as_user_unit(host, account, unit, command):
    """The same of one that an account runs for itself: hosts have no logind, so its control group is made where the account's own systemd would make it."""
    uid = host.succeed(f"id --user {account}").strip()
    group = f"$(findmnt --types cgroup2 --noheadings --output TARGET | head -1)/user.slice/user-{uid}.slice/user@{uid}.service/app.slice/{unit}"
    inner = f"runuser -u {account} -- sh -c {shlex.quote(command + ' || true')}"
    return host.succeed(f'group={group}; mkdir --parents "$group"; group=$group sh -c {shlex.quote("echo $$ > $group/cgroup.procs; exec " + inner)}')


bring_up("base")
ursula.fail(f"test -e {SOCKET}")
drhorrible.succeed("cp --preserve /etc/florete/provider.hujson /root/")
drhorrible.succeed("""sed --in-place '0,/{/s//{ "jwt": {"listen": "127.0.0.1:5557"},/' /etc/florete/provider.hujson""")
deploy("workload")
wait_fulfilled([ursula, raishan])
raishan.succeed("useradd --create-home mallory")

with subtest("an account has its service's certificate, and others are refused"):
    assert ursula.succeed(f"stat --format=%U:%a {SOCKET} /run/florete").split() == ["root:666", "root:755"]
    wait_until(lambda: OUTLINE in as_account(ursula, "outline", fetch()), lambda: f"outline has its own: {as_account(ursula, 'outline', fetch())}")
    for account in ("root", "daemon"):
        wait_refused(lambda: as_account(ursula, account, fetch()))
    wait_refused(lambda: as_account(ursula, "outline", fetch(HEADERS[:2])), status=3)

with subtest("a unit of the system has its own, whatever account it runs as"):
    for more in ("", "--property=DynamicUser=true", "--uid=mallory"):
        wait_until(lambda: BATCH in as_unit(raishan, "batch.service", fetch(), more), lambda: f"batch has its own: {as_unit(raishan, 'batch.service', fetch(), more)}")

with subtest("a unit of a user by the same name has none, nor has another unit of the system"):
    own = as_user_unit(raishan, "mallory", "batch.service", "grep ^0:: /proc/self/cgroup")
    assert own.endswith("/user@1000.service/app.slice/batch.service\n"), own
    wait_refused(lambda: as_user_unit(raishan, "mallory", "batch.service", fetch()))
    wait_refused(lambda: as_unit(raishan, "other.service", fetch()))

with subtest("at local listeners the unit acts as its service, and reaches what that does"):
    wiki = "curl --silent --fail --max-time 5 http://wiki.demo.flor.rete/"
    wait_until(lambda: as_unit(raishan, "batch.service", wiki) == "wiki\n", lambda: "batch reaches wiki")
    assert as_unit(raishan, "other.service", wiki) == "", "root, which acts as the node, reaches wiki"
    assert as_user_unit(raishan, "mallory", "batch.service", wiki) == ""

with subtest("an account has its service's tokens, by the issuer's keys, and no others"):
    ursula.succeed(f"test $(stat --format=%U:%a {STATE}/needs/jwt-service-outline/current/tokens.json) = florete:400")
    found = []
    wait_until(lambda: found.extend(TOKEN.findall(as_account(ursula, "outline", fetch_token("vault")))) or found, lambda: "outline has a token")
    token = found[0]
    claims = part_of(token, 1)
    assert claims["sub"] == OUTLINE and claims["florete_node"] == "ursula" and 120 <= claims["exp"] - claims["iat"] <= 300, claims
    discovered = json.loads(raishan.wait_until_succeeds("curl --silent --fail --max-time 5 http://tokens.demo.flor.rete/.well-known/openid-configuration"))
    assert discovered["issuer"] == claims["iss"], discovered
    keys = json.loads(raishan.wait_until_succeeds(f"curl --silent --fail --max-time 5 {discovered['jwks_uri']}"))["keys"]
    assert part_of(token, 0)["kid"] in [k["kid"] for k in keys], keys
    wait_refused(lambda: as_account(ursula, "outline", fetch_token("bank")))
    wait_refused(lambda: as_account(ursula, "daemon", fetch_token("vault")))

with subtest("a renewed certificate is sent at once over the same stream"):
    ursula.succeed(f"systemd-run --quiet --collect --unit=watching --uid=outline sh -c {shlex.quote(fetch(first='') + ' > /tmp/watched')}")
    ursula.wait_for_file("/tmp/watched")
    # Each message has the ID twice: as text, and in the certificate.
    watched = lambda: ursula.succeed("cat /tmp/watched").count(OUTLINE)
    wait_until(lambda: watched() == 2, lambda: f"the first message is there: {watched()}")
    ursula.succeed("flor refetch cert-service-outline")
    wait_until(lambda: watched() == 4, lambda: f"one more is there: {watched()}")
    ursula.succeed("systemctl stop watching; rm /tmp/watched")


def findings(*checks):
    doctor = json.loads(ursula.execute("flor doctor --json")[1])
    return [c["findings"] for c in doctor["checks"] if c["name"] in checks]


with subtest("the process that serves it has no network and no privilege, and the doctor knows it"):
    pid = ursula.get_unit_property("florete-workload.service", "MainPID")
    assert "CapEff:\t0000000000000000" in ursula.succeed(f"cat /proc/{pid}/status")
    assert ursula.succeed(f"nsenter --target {pid} --net ip -brief link").split()[0] == "lo"
    wait_until(lambda: findings("workload", "units") == [[], []], lambda: f"the doctor finds nothing: {findings('workload', 'units')}")
    assert "by the Workload API too" in ursula.succeed("flor status")
    ursula.succeed("systemctl stop florete-workload.socket")
    [found] = findings("workload")
    ursula.succeed(found[0]["fix"])
    wait_until(lambda: OUTLINE in as_account(ursula, "outline", fetch()), lambda: "it is served again")

drhorrible.succeed("mv /root/provider.hujson /etc/florete/")
deploy("base")
raishan.succeed("userdel --remove mallory")
