"""A service that leaves the topology is closed to everyone, whoever is deployed first; going back opens it."""
# common cluster: base

bring_up("base")
traffic = Traffic(mgmt01, "outline")

with subtest("its host is deployed: callers that do not know yet are refused"):
    deploy("without-wiki", [ursula])
    wait_until(lambda: not reaches(mgmt01, "wiki"), lambda: "wiki is closed")

with subtest("callers are deployed: the name and its local listener are gone"):
    address = mgmt01.succeed("awk '/wiki/ { print $1 }' /etc/hosts").strip()
    deploy("without-wiki", [drhorrible, raishan, mgmt01, laptop])
    mgmt01.wait_until_fails("grep wiki /etc/hosts")
    mgmt01.wait_until_fails(f"(: < /dev/tcp/{address}/80)")
    wait_fulfilled()

with subtest("an operator goes back: wiki is open again, with the certificate it had"):
    before, asked = serial(ursula, "cert-service-wiki"), decisions()
    deploy("base")
    wait_reaches(mgmt01, "wiki")
    assert serial(ursula, "cert-service-wiki") == before

with subtest("nothing of this disturbed the other service"):
    result = traffic.end()
    assert not result["failed"], result
    print(f"       {result['requests']} requests to outline, none failed")
