"""A host has its client secret replaced: the former one is good for a while more, outline is restarted once, and a second rotation waits."""

NEED = "oidc-outline"
OIDC = f"{STATE}/needs/{NEED}/current"


def secret():
    return ursula.succeed(f"cat {OIDC}/client-secret")


def sign_in(with_secret):
    """How the issuer answers outline, which presents a secret and a code that is none: RFC 6749 section 5.2."""
    return ursula.succeed(f"""runuser -u outline -- curl --silent --max-time 5 --user "$(cat {OIDC}/client-id):{with_secret}" \
        --data grant_type=authorization_code --data code=none --data redirect_uri=http://outline.demo.flor.rete/auth/oidc.callback \
        http://auth.demo.flor.rete/token || true""")


def starts():
    """How often outline was started since the host was."""
    return ursula.succeed("journalctl --quiet --boot --unit=outline.service --output=cat").count("Started ")


bring_up("base")
wait_started(ursula, "outline.service")

with subtest("fetching again returns the same secret, and notifies nobody"):
    first = secret()
    wait_until(lambda: "invalid_grant" in sign_in(first), lambda: f"the issuer knows outline: {sign_in(first)}")
    before, answers = starts(), needs(ursula)[NEED]["answers"]
    ursula.succeed(f"flor refetch {NEED}")
    wait_until(lambda: needs(ursula)[NEED]["answers"] > answers, lambda: "it is fetched again")
    assert secret() == first and starts() == before

with subtest("a rotation replaces it: the former one is still accepted, and outline is restarted once"):
    ursula.succeed(f"flor rotate {NEED}")
    wait_until(lambda: secret() != first, lambda: "another secret is delivered")
    second = secret()
    for accepted in (first, second):
        assert "invalid_grant" in sign_in(accepted), sign_in(accepted)
    assert "invalid_client" in sign_in("guess"), sign_in("guess")
    wait_until(lambda: starts() == before + 1, lambda: f"outline is restarted once: {starts() - before}")
    wait_fulfilled([ursula])
    assert needs(ursula)[NEED]["rotations"] == 1, needs(ursula)[NEED]

with subtest("the provider has who did it in its audit log, and neither secret in any log"):
    row = drhorrible.succeed("flor-provider audit --json --settings /etc/florete/provider.hujson | grep '\"rotation\":\"1\"'")
    assert "node/ursula" in row, row
    for host in machines:
        for old in (first, second):
            host.fail(f"journalctl --quiet --boot | grep -F -e '{old}'")

with subtest("a second one within ten minutes is refused, and what is delivered goes on"):
    ursula.succeed(f"flor rotate {NEED}")
    wait_until(lambda: "between two rotations" in (needs(ursula)[NEED].get("error") or {}).get("message", ""), lambda: f"the reason: {needs(ursula)[NEED]}")
    assert secret() == second and "invalid_grant" in sign_in(second)

with subtest("a certificate has no secret to rotate"):
    assert "flor refetch cert-node" in ursula.fail("flor rotate cert-node 2>&1")
