"""While the provider is down the cluster works on; when it is back, hosts catch up by themselves."""
# common cluster: base

bring_up("base")
with subtest("traffic, a restart of everything and a reboot need no provider"):
    drhorrible.shutdown()
    traffic = Traffic(mgmt01, "outline", "metrics")
    raishan.succeed("systemctl restart florete-activate.service florete-agent.service")
    laptop.reboot()
    wait_started(laptop, "florete-agent.service")
    wait_reaches(laptop, "metrics")
    wait_reaches(raishan, "outline")

with subtest("a need that is lost meanwhile waits, says why, and delays no other"):
    lose(ursula, "cert-service-wiki")
    wait_until(lambda: needs(ursula)["cert-service-wiki"].get("attempts", 0) >= 3, lambda: f"ursula asks: {needs(ursula)}")
    assert [n for n, s in needs(ursula).items() if s["state"] != "fulfilled"] == ["cert-service-wiki"], needs(ursula)
    ursula.succeed("systemctl show --property=StatusText florete-activate.service | grep 'cert-service-wiki'")

with subtest("the provider is back; ursula has what it lacked, and no request to outline failed"):
    drhorrible.start(allow_reboot=True)
    wait_fulfilled([ursula])
    wait_reaches(mgmt01, "wiki")
    result = traffic.end()
    assert not result["failed"], result
    print(f"       {result['requests']} requests, none failed")
