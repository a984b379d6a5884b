"""A host tells of itself to a role that may look, acts for one that may act, and says nothing where nobody published it."""
# common cluster: base

LOOK, ACT = "http://host.ursula.demo.flor.rete", "http://refetch.ursula.demo.flor.rete"


def call(host, url, *options):
    """Status and body of an answer; 0 where there is none."""
    code, out = host.execute(f"curl --silent --max-time 20 --write-out '\\n%{{http_code}}' {' '.join(options)} '{url}'")
    body, _, status = out.rpartition("\n")
    return int(status), body


bring_up("base")

with subtest("by default nothing is there to ask, nor a name to ask for"):
    ursula.fail("systemctl cat florete-host.service")
    ursula.succeed("! ls /run/florete-host.sock && ! ls /run/florete-host-refetch.sock")
    mgmt01.fail(r"grep 'ursula\.demo' /etc/hosts")

deploy("host-api")
wait_fulfilled([ursula])

with subtest("an operator asks for a need again"):
    mgmt01.wait_until_succeeds("grep refetch.ursula /etc/hosts")
    before = serial(ursula, "cert-service-wiki")
    wait_until(lambda: call(mgmt01, f"{ACT}/refetch?need=cert-service-wiki", "--request POST")[0] == 202, lambda: "it is taken")
    status, text = call(mgmt01, f"{ACT}/refetch?need=cert-node-laptop", "--request POST")
    assert status == 404 and "this host has" in text, (status, text)

with subtest("a reader sees the manifest, the status and a journal, to the byte"):
    wait_until(lambda: call(raishan, f"{LOOK}/status")[0] == 200, lambda: "raishan may look")
    assert call(raishan, f"{LOOK}/manifest") == (200, ursula.succeed("cat /etc/florete/documents/manifest.json"))
    assert json.loads(call(raishan, f"{LOOK}/status")[1])["host"] == "ursula"
    status, text = call(raishan, f"{LOOK}/journal/florete-activate?lines=3")
    assert status == 200 and text.count("\n") <= 3 and "flor[" in text, text

with subtest("it has bounds: some units, some lines"):
    assert call(raishan, f"{LOOK}/journal/florete-activate?lines=1000000")[0] == 400
    status, text = call(raishan, f"{LOOK}/journal/dbus")
    assert status == 404 and "want one of florete-activate" in text, text

with subtest("a journal is followed line by line"):
    raishan.succeed(f"systemd-run --quiet --setenv=PATH=$PATH --unit=follow sh -c \"exec curl --silent --no-buffer '{LOOK}/journal/wiki?follow=1&lines=1' > /run/followed\"")
    raishan.wait_until_succeeds("test -s /run/followed")
    ursula.succeed("systemctl stop wiki.service")
    raishan.wait_until_succeeds("grep 'Stopped wiki' /run/followed")
    ursula.succeed("systemctl start wiki.service")
    raishan.wait_until_succeeds("grep 'Started wiki' /run/followed")
    raishan.succeed("systemctl stop follow")
    ursula.wait_until_fails("pgrep journalctl")

with subtest("who may look may not act, and others may do neither"):
    assert call(raishan, f"{LOOK}/refetch?need=cert-service-wiki", "--request POST")[0] == 404
    raishan.fail("grep refetch.ursula /etc/hosts")
    laptop.fail(r"grep 'ursula\.demo' /etc/hosts")
    address = ursula.succeed("stat --format=%U:%a /run/florete-host.sock /run/florete-host-refetch.sock").split()
    assert address == ["florete:600"] * 2, address

with subtest("what was asked for is fetched again, once ten seconds have passed since the last time"):
    if serial(ursula, "cert-service-wiki") == before:  # on a busy machine they have
        # As if they had: what activation knows of the need says so.
        ursula.succeed("systemctl stop florete-activate.service", f"sed -i -E 's/\"lastAttempt\": ?[0-9]+/\"lastAttempt\":1/' {STATE}/needs/cert-service-wiki/state.json")
        ursula.succeed("systemctl start florete-activate.service")
    wait_until(lambda: serial(ursula, "cert-service-wiki") != before, lambda: "another certificate is there")

with subtest("a socket stops and starts again while its service runs"):
    for socket in ("florete-host.socket", "florete-host-refetch.socket"):
        ursula.succeed(f"systemctl stop {socket}", f"systemctl start {socket}")
        wait_until(lambda: call(raishan, f"{LOOK}/status")[0] == 200, lambda: "raishan looks again")

deploy("base")
