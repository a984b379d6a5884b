"""Certificates are renewed under traffic, again and again, with zero failed requests."""
# common cluster: brief

bring_up("brief")
CERTIFICATES = [(ursula, "cert-node"), (ursula, "cert-service-wiki"), (ursula, "cert-service-outline"), (mgmt01, "cert-node"), (raishan, "cert-node")]
ROUNDS = 4

traffic = [Traffic(mgmt01, "wiki", "outline"), Traffic(raishan, "outline")]
held = Held(mgmt01, "outline")
seen = {(host.name, need): {serial(host, need)} for host, need in CERTIFICATES}


def renewed():
    for host, need in CERTIFICATES:
        seen[host.name, need].add(serial(host, need))
    return all(len(serials) > ROUNDS for serials in seen.values())


with subtest(f"every certificate on both sides of the traffic is replaced {ROUNDS} times"):
    wait_until(renewed, lambda: f"all are renewed: {[(k, len(v)) for k, v in seen.items()]}")

with subtest("no request failed"):
    for t in traffic:
        result = t.end()
        assert not result["failed"], result
        print(f"       {t.host.name}: {result['requests']} requests, none failed")

with subtest("a connection that stayed open outlived all of these certificates"):
    result = held.end()
    assert not result["error"], result
    print(f"       {result['requests']} requests over one connection")

with subtest("units that did not ask for it were not restarted"):
    assert ursula.get_unit_property("florete-agent.service", "NRestarts") == "0"
