"""Hosts that are up long before their provider are fulfilled soon after it is there."""

others = [raishan, ursula, mgmt01, laptop]
with subtest("without any provider hosts boot and keep asking, ever more slowly"):
    for host in others:
        host.start(allow_reboot=True)
    deploy("base", others)
    for host in others:
        wait_until(lambda: needs(host)["cert-node"].get("attempts", 0) >= 4, lambda: f"{host.name} asked four times: {needs(host)}")
        assert host.succeed("systemctl --failed --no-legend") == ""

with subtest("what depends on the identity waits for it and asks nobody"):
    found = needs(ursula)
    assert found["cert-service-wiki"]["state"] == "blocked" and found["cert-service-wiki"]["attempts"] == 0, found

with subtest("hosts wait different times: they will not come back as a herd"):
    waits = {needs(host)["cert-node"]["next"] - needs(host)["cert-node"]["lastAttempt"] for host in others}
    print(f"       waits in seconds: {sorted(waits)}")

with subtest("the provider comes up; nobody touches a host, and every need is fulfilled"):
    drhorrible.start(allow_reboot=True)
    deploy("base", [drhorrible])
    sign_issuer()
    wait_fulfilled()

with subtest("the services work"):
    wait_reaches(mgmt01, "wiki")
    wait_reaches(raishan, "outline")
