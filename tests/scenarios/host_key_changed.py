"""A host whose SSH host key changed gets nothing until the topology says so."""

bring_up("base")
ursula.succeed("cp -rL /etc/florete/documents /run/former")

with subtest("a reinstalled host with another key enrols nowhere, and says what is wrong"):
    ursula.succeed("systemctl stop florete-activate.service", f"rm -r {STATE}/*", "cp /etc/ssh/ssh_host_ed25519_key /etc/ssh/former")
    ursula.succeed("cp /etc/ssh/next /etc/ssh/ssh_host_ed25519_key", "systemctl start florete-activate.service")
    wait_until(lambda: needs(ursula)["cert-node"].get("error"), lambda: f"ursula says why: {needs(ursula)}")
    found = needs(ursula)["cert-node"]
    assert found["state"] in ("denied", "invalid"), found
    print(f"       {found['error']['message']}")
    ursula.fail(f"test -e {STATE}/needs/cert-node/current")

with subtest("its documents alone do not help: the provider has to know"):
    deploy("new-host-key", [ursula])
    wait_until(lambda: (needs(ursula)["cert-node"].get("error") or {}).get("code") == "policy-behind", lambda: f"ursula is told to wait: {needs(ursula)}")
    ursula.fail(f"test -e {STATE}/needs/cert-node/current")

with subtest("the provider is deployed: the host enrols with its new key by itself"):
    deploy("new-host-key", [drhorrible])
    wait_fulfilled([ursula])
    wait_reaches(mgmt01, "wiki")

with subtest("the former key opens nothing any more"):
    ursula.succeed("systemctl stop florete-activate.service", f"rm -r {STATE}/*", "cp /etc/ssh/former /etc/ssh/ssh_host_ed25519_key")
    ursula.execute("timeout 20 flor activate --once --closure /run/former")
    ursula.fail(f"test -e {STATE}/needs/cert-node/current")
    denied = drhorrible.succeed("flor-provider audit --settings /etc/florete/provider.hujson | grep denied | tail -n 1")
    print("       " + " ".join(denied.split()))
