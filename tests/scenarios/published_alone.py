"""Publishing alone adds a host, a service and its grants: nobody but the new host is deployed."""

others = [drhorrible, ursula, mgmt01, laptop]
bring_up("without-raishan", others)
traffic = Traffic(mgmt01, "outline", "wiki")


def closure(host):
    """What activation took from the host's own generation."""
    return json.loads(host.succeed(f"cat {STATE}/activation.json"))["closure"]


def listener(host):
    """Of news, on a host that may reach it."""
    found = [r["listen"] for r in manifest(host)["forwarder"]["reach"] if r["id"].endswith("/service/news")]
    return found[0] if found else ""


def granted():
    """Needs that the policy in force at the provider host grants to raishan."""
    grants = json.loads(drhorrible.succeed(f"cat {STATE}/documents/current/policy.json"))["grants"]
    return {g["need"] for g in grants if g["caller"].endswith("/node/raishan")}


before = everywhere(closure, others)

with subtest("what is published comes into force everywhere, the provider's own policy too"):
    assert not granted() and not listener(mgmt01)
    began = time.time()
    publish("news")
    wait_until(lambda: "cert-service-news" in granted(), lambda: f"the policy grants it: {granted()}")
    wait_until(lambda: listener(mgmt01) and listener(laptop), lambda: "callers have a listener")
    print(f"       {time.time() - began:.0f} s later")

with subtest("the new host has its documents: it enrols, and its service is reached"):
    raishan.start(allow_reboot=True)
    began = time.time()
    deploy("news", [raishan])
    wait_fulfilled([raishan])
    wait_started(raishan, "florete-agent.service")
    raishan.succeed(f"systemd-run --quiet --collect --unit=news --property=DynamicUser=true {PROGRAMS}/answer.py 4656 news")
    laptop.wait_until_succeeds(f"runuser -u alice -- curl --silent --fail --max-time 5 http://{listener(laptop)}/ | grep news")
    mgmt01.wait_until_succeeds(f"curl --silent --fail --max-time 5 http://{listener(mgmt01)}/ | grep news")
    wait_reaches(raishan, "outline")
    print(f"       at work {time.time() - began:.0f} s later")

with subtest("polls that change nothing are answered, and leave no trace at the provider"):
    asked, polls = decisions(), needs(ursula)["config-documents"]["answers"]
    wait_until(lambda: needs(ursula)["config-documents"]["answers"] >= polls + 3, lambda: "ursula has polled")
    assert decisions() == asked, drhorrible.succeed("flor-provider audit | tail")

with subtest("the provider's processes answer by it after a restart"):
    drhorrible.succeed("systemctl restart florete-provider.target")
    lose(raishan, "cert-service-news")
    wait_fulfilled([raishan])

with subtest("nobody else was deployed, and no request failed"):
    assert everywhere(closure, others) == before
    result = traffic.end()
    assert not result["failed"], result
    print(f"       {result['requests']} requests, none failed")
