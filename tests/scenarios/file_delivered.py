"""A secret that lies at the provider, is sent or made there, or that an executable there answers with, reaches its service's account and no other; raising its generation rotates it."""

import base64

NEED = "file-outline-smtp-password"
REF = "outline/smtp-password"
CONTROL = "http://florete-control.drhorrible.demo.flor.rete"
SESSION = f"{STATE}/needs/secret-{{}}-session/current/session"
DELIVERED = f"{STATE}/needs/{NEED}/current/smtp-password"


def put(secret):
    """The operator puts the file where the provider alone reads it."""
    drhorrible.succeed(f"printf %s {secret} | install -D -o florete-provider-file -m 0600 /dev/stdin {PROVIDER}/file/files/{REF}")


OWN = "mailbox-outline-mail"
# Killed in the middle of its first run, with the provider's process.
EXECUTABLE = r"""#!/bin/sh
secret=$(sed -n 's/.*"secret":"\([^"]*\)".*/\1/p')
echo "$(id -un) $secret" >> made
if [ "$(wc -l < made)" = 1 ]; then kill -9 $PPID; sleep 60; fi
echo "{\"values\":{\"password\":\"$secret\"}}"
"""


def as_outline():
    return ursula.succeed(f"runuser -u outline -- cat {DELIVERED}")


def outline_since():
    return ursula.succeed("systemctl show --property=ActiveEnterTimestampMonotonic --value outline.service").strip()


with subtest("while nobody has put the file at the provider, the host says just that and everything else works"):
    start_all()
    drhorrible.succeed("base64 --decode <<< " + base64.b64encode(EXECUTABLE.encode()).decode() + " | install -D -m 0755 /dev/stdin /usr/local/lib/florete/mailbox")
    deploy("with-file")
    sign_issuer()
    ursula.wait_until_succeeds(f"systemctl show --property=StatusText florete-activate.service | grep '{NEED}.*drhorrible'")
    # Until the provider has its certificate the reason is another.
    wait_until(lambda: f'file "{REF}": not on this provider yet' in (needs(ursula)[NEED].get("error") or {}).get("message", ""), lambda: f"ursula has the reason: {needs(ursula)}")
    wait_until(lambda: all(n["state"] == "fulfilled" for i, n in needs(ursula).items() if i != NEED), lambda: "the rest")
    reason = needs(ursula)[NEED]["error"]
    assert reason["kind"] == "transient", reason
    print(f"       {reason['message']}")

with subtest("an executable that was killed in the middle ran again, as the provider's account, and the host has what it did both times"):
    first, second = (line.split() for line in drhorrible.succeed(f"cat {PROVIDER}/mailbox/work/made").splitlines())
    assert first == second and first[0] == "florete-provider-mailbox", (first, second)
    assert ursula.succeed(f"runuser -u outline -- cat {STATE}/needs/{OWN}/current/password") == first[1]
    ursula.fail(f"runuser -u alice -- cat {STATE}/needs/{OWN}/current/password")
    for host in machines:
        host.fail(f"journalctl --quiet --boot | grep {first[1]}")

with subtest("once it is there it is delivered with owner and mode, and outline is started again with it"):
    if NEED not in ursula.succeed("systemctl cat outline.service"):  # on NixOS it waits for the file too
        wait_started(ursula, "outline.service")
    since = outline_since()
    put("swordfish")
    wait_fulfilled()
    assert as_outline() == "swordfish"
    ursula.succeed(f"test $(stat --dereference --format=%U:%G:%a {DELIVERED}) = outline:outline:440")
    wait_until(lambda: outline_since() != since, lambda: "outline is restarted")

with subtest("no other account reads it, on either host, and it is in no log"):
    ursula.fail(f"runuser -u alice -- cat {DELIVERED}")
    drhorrible.fail(f"runuser -u alice -- cat {PROVIDER}/file/files/{REF}")
    for host in machines:
        host.fail("journalctl --quiet --boot | grep swordfish")

with subtest("what the provider makes is the same for a service on one host and for another host, each for its account"):
    made = mgmt01.succeed(f"cat {SESSION.format('node')}")
    assert len(made) == 32 and made == ursula.succeed(f"runuser -u outline -- cat {SESSION.format('outline')}")
    assert mgmt01.succeed(f"stat --dereference --format=%U:%a {SESSION.format('node')}").strip() == "root:400"
    assert mgmt01.succeed(f"cat {SESSION.format('node')}.other") == ""
    drhorrible.fail(f"grep --recursive --quiet {made} {PROVIDER}")
    for host in machines:
        host.fail(f"journalctl --quiet --boot | grep {made}")

with subtest("an operator sends another file: the process that keeps it is called through another, and decides itself"):
    body = json.dumps({"ref": REF, "content": "marlin"})
    sent = json.loads(mgmt01.succeed(f"curl --silent --show-error --max-time 20 {CONTROL}/v1/files --data '{body}'"))
    assert sent["ref"] == REF and sent["by"] == "spiffe://demo.flor/node/mgmt01", sent
    assert [s["secret"] for s in json.loads(mgmt01.succeed(f"curl --silent --max-time 20 {CONTROL}/v1/secrets"))["secrets"]] == ["session"]
    for account in ("florete", "root"):
        drhorrible.fail(f"runuser -u {account} -- curl --silent --max-time 5 --unix-socket /run/florete-provider-file/control.sock {CONTROL}/v1/files")
    rows = [json.loads(line) for line in drhorrible.succeed("flor-provider audit --json --kind control").splitlines()]
    assert any(r.get("code") == "file-set" and r["caller"] == sent["by"] for r in rows), rows
    drhorrible.fail(f"grep --recursive --quiet marlin {PROVIDER}")

with subtest("a changed file changes nothing until the topology says so"):
    ursula.succeed("systemctl restart florete-activate.service")
    wait_fulfilled([ursula])
    assert as_outline() == "swordfish"

with subtest("a raised generation rotates it: fetched anew, outline restarted once"):
    since = outline_since()
    deploy("file-rotated")
    wait_until(lambda: as_outline() == "marlin", lambda: "the second secret is there")
    wait_fulfilled()
    wait_until(lambda: outline_since() != since, lambda: "outline is restarted")
    wait_reaches(mgmt01, "outline")

with subtest("going back asks for a generation that is no more: refused with the reason, and the new secret stays"):
    deploy("with-file", [ursula])
    wait_until(lambda: needs(ursula)[NEED]["state"] == "denied", lambda: f"it is denied: {needs(ursula)[NEED]}")
    message = needs(ursula)[NEED]["error"]["message"]
    assert "generation 1 requested, the policy grants generation 2" in message, message
    assert as_outline() == "marlin"
    print(f"       {message}")
