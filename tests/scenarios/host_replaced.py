"""A host is replaced by a new machine of the same name; the old one, which is still there, is shut out."""

bring_up("base")
FORMER = "/run/former"


def move(files, of, to):
    """Carries files of one machine to a directory of another."""
    packed = of.succeed(f"tar -C / -czf - {files} | base64 -w0")
    to.succeed(f"mkdir -p {FORMER}; base64 -d <<< {packed} | tar -C {FORMER} -xzf -")


def former_requests(need):
    """The old machine, which has moved elsewhere, requests a need; the last event of it."""
    laptop.succeed(f"rm -rf /run/moved; cp -a {FORMER}/var/lib/florete /run/moved; rm -r /run/moved/needs/{need}")
    result = laptop.execute(f"flor activate --once --json --state /run/moved --ssh-host-key {FORMER}/etc/ssh/ssh_host_ed25519_key --refetch /nowhere")[1]
    result = [json.loads(line) for line in result.splitlines()]
    return [e for e in result if e.get("need") == need and e["event"] in ("fulfilled", "failed")][-1]


def refused(need):
    """The old machine requests a need until it is refused; the refusal."""
    found = []
    wait_until(
        lambda: found.append(former_requests(need)) or found[-1]["event"] == "failed",
        lambda: f"the old machine is refused {need}: {found[-1]}",
    )
    return found[-1]


with subtest("the old machine is at work, with certificates good for a day"):
    move("etc/ssh/ssh_host_ed25519_key var/lib/florete", ursula, laptop)
    assert former_requests("cert-service-wiki")["event"] == "fulfilled"

with subtest("the new machine of that name has another SSH host key, and nothing else"):
    began = time.monotonic()
    ursula.succeed("systemctl stop florete-activate.service florete-agent.service", f"rm -r {STATE}/*")
    ursula.crash()
    ursula.start(allow_reboot=True)
    ursula.succeed("mv /etc/ssh/next /etc/ssh/ssh_host_ed25519_key", "mv /etc/ssh/next.pub /etc/ssh/ssh_host_ed25519_key.pub")

with subtest("once the provider is deployed the old machine obtains no certificate and no secret, before the new one has enrolled"):
    deploy("new-host-key", [drhorrible])
    # Each kind's process takes the new policy up by itself.
    result = refused("cert-node")
    assert result["kind"] == "denied", result
    for need in ("cert-service-wiki", "oidc-outline", "config-documents"):
        result = refused(need)
        assert (result["kind"], result["code"]) == ("denied", "device-key"), result
    print(f"       {result['message']}")

with subtest("the new machine is deployed: it enrols, has all that its services need, and callers notice nothing else"):
    deploy("new-host-key", [ursula])
    wait_fulfilled([ursula])
    for service in ("wiki", "outline"):
        wait_reaches(mgmt01, service)
    print(f"       at work {time.monotonic() - began:.0f} s after it was installed")

with subtest("from now on the old machine gets nothing"):
    for need in ("cert-service-wiki", "oidc-outline", "config-documents"):
        result = former_requests(need)
        assert result["event"] == "failed", result
    print(f"       {result['message']}")
