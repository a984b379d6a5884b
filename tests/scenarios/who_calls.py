"""Services learn who calls, from headers and from the forwarder, and other accounts of their host forge neither."""
# common cluster: base

bring_up("base")
ursula.succeed("useradd --system shown; useradd --create-home mallory")
ursula.succeed("install --directory --owner=shown --group=florete --mode=0750 /run/bytes")
ursula.succeed(f"systemd-run --quiet --collect --unit=callers --uid=shown {PROGRAMS}/callers.py 4657 /run/bytes/socket")
deploy("named")
wait_fulfilled([ursula])

URL = "http://shown.demo.flor.rete/"
NODE, ALICE = "spiffe://demo.flor/node/mgmt01", "spiffe://demo.flor/user/alice"


def seen(host, *options, user="root"):
    """Whom the service believes to call; None where it is not reached."""
    code, out = host.execute(f"runuser -u {user} -- curl --silent --fail --max-time 5 {' '.join(options)} {URL}")
    return None if code else json.loads(out)


def named(what, id):
    return what and [h.split(";URI=")[-1] for h in what["headers"]] == [id] and what["whois"]["caller"] == id and len(what["address"]) == 1


def of_bytes(host, text=""):
    """Whom the service behind the Unix socket believes to call."""
    return host.execute(f"printf '{text}' | timeout 5 curl --silent --no-buffer --max-time 3 telnet://bytes.demo.flor.rete:7")[1].strip()


with subtest("a service learns who calls it: from headers, from the forwarder, from a PROXY header"):
    wait_until(lambda: named(seen(mgmt01), NODE), lambda: f"it is mgmt01: {seen(mgmt01)}")
    wait_until(lambda: named(seen(laptop, user="alice"), ALICE), lambda: f"it is alice: {seen(laptop, user='alice')}")
    wait_until(lambda: of_bytes(mgmt01) == NODE, lambda: f"it is mgmt01: {of_bytes(mgmt01)}")

with subtest("a caller that claims to be another is itself"):
    forged = [f"--header '{name}: URI={ALICE}'" for name in ("X-Forwarded-Client-Cert", "x_forwarded_client_cert", "X.Forwarded-Client.Cert")]
    assert named(seen(mgmt01, *forged, "--header 'X-Forwarded-For: 192.0.2.1'"), NODE)
    assert named(seen(mgmt01, "--header 'Connection: X-Forwarded-Client-Cert'"), NODE)
    assert of_bytes(mgmt01, "PROXY TCP4 192.0.2.1 192.0.2.2 1 2\\r\\n") == NODE

with subtest("no other account of the host connects to the service, which a header would convince"):
    ursula.wait_for_unit("florete-guard.service")
    direct = f"curl --silent --fail --max-time 5 --header 'X-Forwarded-Client-Cert: URI={ALICE}' http://127.0.0.1:4657/"
    for account in ("mallory", "daemon"):
        wait_until(lambda: ursula.execute(f"runuser -u {account} -- {direct}")[0] == 7, lambda: f"{account} is refused")
        ursula.fail(f"runuser -u {account} -- curl --silent --max-time 5 --unix-socket /run/bytes/socket http://bytes/")

with subtest("the service itself connects, and the forwarder has no caller for that"):
    alone = json.loads(ursula.succeed(f"runuser -u shown -- {direct}"))
    assert "no connection of the forwarder" in alone["whois"]["error"], alone

with subtest("who runs no service is not answered, root has the command"):
    ask = "curl --silent --unix-socket /run/florete/agent/whois.sock 'http://agent/whois?from=127.0.0.1:1'"
    assert "is no service" in ursula.succeed(f"runuser -u mallory -- {ask}")
    assert "no connection of the forwarder" in ursula.succeed(f"runuser -u shown -- {ask}")
    mgmt01.succeed("systemd-run --quiet --collect --unit=open sh -c 'sleep 900 | curl --silent --no-buffer telnet://shown.demo.flor.rete:80'")
    wait_until(lambda: ursula.execute("ss --no-header --tcp --numeric state established 'dport = :4657' | grep -q .")[0] == 0, lambda: "a connection")
    address = ursula.succeed("ss --no-header --tcp --numeric state established 'dport = :4657' | head -1").split()[2]
    assert ursula.succeed(f"flor whois {address}").strip() == NODE
    assert json.loads(ursula.succeed(f"flor whois --json {address}"))["service"] == "spiffe://demo.flor/service/shown"
    _, answer = ursula.execute("flor whois 127.0.0.1:1 2>&1")
    assert "no connection of the forwarder comes from 127.0.0.1:1" in answer, answer

mgmt01.succeed("systemctl stop open")
deploy("base")
ursula.succeed("systemctl stop callers; ! id shown || userdel shown; userdel --remove mallory; rm -r /run/bytes")
