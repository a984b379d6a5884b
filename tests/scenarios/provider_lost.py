"""The provider host is lost: with a backup it goes on by itself, and nothing older comes back; without one the operator signs once."""

bring_up("base")
traffic = Traffic(mgmt01, "wiki")
OIDC = f"{STATE}/needs/oidc-outline/current"


def lose_machine():
    """The machine is gone; another is installed in its place."""
    drhorrible.succeed("systemctl stop florete-provider.target florete-activate.service florete-agent.service")
    drhorrible.succeed(f"rm -rf {STATE}/* {PROVIDER}/*/*")
    drhorrible.crash()
    drhorrible.start(allow_reboot=True)


def secret():
    return ursula.succeed(f"cat {OIDC}/client-secret")


def sign_in(presented=f"$(cat {OIDC}/client-secret)"):
    """How the issuer answers outline, which presents its credentials and a code that is none: RFC 6749 section 5.2."""
    return ursula.succeed(f"""runuser -u outline -- curl --silent --max-time 5 --user "$(cat {OIDC}/client-id):{presented}" \
        --data grant_type=authorization_code --data code=none --data redirect_uri=http://outline.demo.flor.rete/auth/oidc.callback \
        http://auth.demo.flor.rete/token || true""")


def ask_anew(need):
    lose(ursula, need)
    wait_fulfilled([ursula])


with subtest("a backup takes seconds, which nobody notices, and holds no secret"):
    wait_until(lambda: "invalid_grant" in sign_in(), lambda: f"the issuer knows outline: {sign_in()}")
    drhorrible.succeed(
        "flor-provider state backup /root/provider.state",
        "tar -C /var/lib/florete-provider --exclude=state.db* --exclude=seal.* --exclude=cache --exclude=log/[^a]* -chzf /root/provider.tar.gz . || [ $? = 1 ]",
        "test $(stat -c %a /root/provider.state) = 600",
    )
    replaced = secret()
    ursula.succeed("flor rotate oidc-outline")
    wait_until(lambda: secret() != replaced, lambda: "outline has another secret")
    before = secret()

with subtest("the host is lost, installed again and its backup restored: nobody signs anything"):
    lose_machine()
    began = time.monotonic()
    deploy("base", [drhorrible])
    drhorrible.wait_for_file(f"{PROVIDER}/cert/issuing.csr")
    drhorrible.succeed(
        "systemctl stop florete-provider.target",
        "tar -C /var/lib/florete-provider --keep-directory-symlink -xpf /root/provider.tar.gz",
        "systemctl start florete-provider.target",
    )
    drhorrible.wait_until_succeeds(f"test -e {PROVIDER}/oidc/seal.key && test -e {PROVIDER}/config/seal.key")
    print(drhorrible.succeed("flor-provider state restore /root/provider.state"))
    publish("base")
    wait_fulfilled()
    ask_anew("cert-service-wiki")
    wait_reaches(mgmt01, "outline")
    print(f"       {time.monotonic() - began:.0f} s")

with subtest("the secret that was replaced after the backup stays refused, and the host gets another by itself"):
    wait_until(lambda: "invalid_client" in sign_in(replaced), lambda: f"the former secret is refused: {sign_in(replaced)}")
    wait_until(lambda: secret() not in (replaced, before), lambda: "outline has another secret")
    wait_until(lambda: "invalid_grant" in sign_in(), lambda: f"the issuer knows outline: {sign_in()}")
    print(f"       {time.monotonic() - began:.0f} s")
    before = secret()

with subtest("lost without a backup, its SSH host key too: the operator signs once, and hosts go on with what they have"):
    lose_machine()
    drhorrible.succeed("mv /etc/ssh/next /etc/ssh/ssh_host_ed25519_key", "mv /etc/ssh/next.pub /etc/ssh/ssh_host_ed25519_key.pub")
    began = time.monotonic()
    deploy("provider-replaced", [drhorrible])
    drhorrible.wait_for_file(f"{PROVIDER}/cert/issuing.csr")
    drhorrible.succeed(f"echo '[]' | install -m 0600 /dev/stdin {PROVIDER}/oidc/users.hujson", f"chown --reference={PROVIDER}/oidc {PROVIDER}/oidc/users.hujson")
    sign_issuer()
    wait_fulfilled()
    ask_anew("cert-service-wiki")
    print(f"       {time.monotonic() - began:.0f} s")

with subtest("its clients have secrets that it does not know: they are asked for again"):
    wait_until(lambda: "invalid_client" in sign_in(), lambda: f"the issuer does not know outline: {sign_in()}")
    ursula.succeed("flor refetch oidc-outline")
    wait_until(lambda: secret() != before, lambda: "outline has another secret")
    wait_until(lambda: "invalid_grant" in sign_in(), lambda: f"the issuer knows outline: {sign_in()}")

with subtest("no request to the wiki failed all the while"):
    result = traffic.end()
    assert not result["failed"], result
    print(f"       {result['requests']} requests, none failed")
