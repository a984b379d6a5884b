"""The state of a provider host moves from its files into a store that others share, while it serves: nothing is replaced, and the files are never served again."""
PROVIDERS = [drhorrible, raishan, mgmt01]
OIDC = f"{STATE}/needs/oidc-outline/current"


def secret():
    return ursula.succeed(f"cat {OIDC}/client-secret")


def granted(host):
    """Requests by key that were granted anew, in the log of all kinds of a host."""
    rows = [json.loads(row) for row in host.succeed("flor-provider audit --json").splitlines()]
    return [row["key"] for row in rows if row["decision"] == "granted" and row["key"] and not row.get("replayed")]


bring_up("base")
traffic = Traffic(mgmt01, "wiki")
before, former = secret(), granted(drhorrible)

with subtest("the state moves while it is served, and other hosts answer from it"):
    certify_store(PROVIDERS)
    began = time.monotonic()
    deploy("moved")
    for host in (raishan, mgmt01):
        sign_replica(host)
    print(drhorrible.succeed("flor-provider state migrate --timeout 2m"))
    print(f"       {time.monotonic() - began:.0f} s")
    wait_fulfilled()
    wait_until(lambda: raishan.execute("flor-provider audit --json")[0] == 0, lambda: "raishan serves")
    now = granted(drhorrible)
    assert set(former) <= set(now), [key for key in former if key not in now]
    assert len(now) == len(set(now)), sorted(now)
    assert granted(raishan) and set(granted(raishan)) <= set(now), "raishan has the log of before, but for kinds that it does not provide"

with subtest("no secret was replaced, also where it is requested again"):
    ursula.succeed("flor refetch oidc-outline")
    wait_fulfilled([ursula])
    assert secret() == before

with subtest("the files are never served again"):
    deploy("base", [drhorrible])
    STATUS = "systemctl show --property=StatusText florete-provider-cert.service"
    wait_until(lambda: "its state moved to the store at" in drhorrible.succeed(STATUS), lambda: drhorrible.succeed(STATUS))
    print(f"       {drhorrible.succeed(STATUS).strip()}")
    deploy("moved", [drhorrible])
    wait_until(lambda: "serving" in drhorrible.succeed(STATUS), lambda: drhorrible.succeed(STATUS))

with subtest("no request to the wiki failed all the while"):
    result = traffic.end()
    assert not result["failed"], result
    print(f"       {result['requests']} requests, none failed")
