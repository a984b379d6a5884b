"""A host joins a cluster at work: it and its provider are deployed, and nobody else is touched."""

others = [drhorrible, ursula, mgmt01, laptop]
bring_up("without-raishan", others)
traffic = Traffic(mgmt01, "outline", "wiki")

with subtest("deployed before its provider, the new host is told so, and waits"):
    raishan.start(allow_reboot=True)
    deploy("polled-again", [raishan])
    wait_until(lambda: (needs(raishan)["cert-node"].get("error") or {}).get("code") == "policy-behind", lambda: f"raishan is told: {needs(raishan)}")
    print(f"       {needs(raishan)['cert-node']['error']['message']}")
    assert "node/raishan" not in json.dumps(manifest(ursula))

with subtest("its provider is deployed: the host enrols by itself, and the others learn of it from the provider"):
    began = time.monotonic()
    deploy("polled-again", [drhorrible])
    wait_fulfilled([raishan])
    wait_started(raishan, "florete-agent.service")
    wait_reaches(raishan, "outline")
    print(f"       at work {time.monotonic() - began:.0f} s later")

with subtest("it reaches what its roles give, and nothing else"):
    reached = {r["id"].removeprefix("spiffe://demo.flor/") for r in manifest(raishan)["forwarder"]["reach"]}
    assert reached == {"service/metrics", "service/outline"}, reached
    wait_reaches(raishan, "metrics")

with subtest("nobody else noticed"):
    result = traffic.end()
    assert not result["failed"], result
    print(f"       {result['requests']} requests, none failed")
