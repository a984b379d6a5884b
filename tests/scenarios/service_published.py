"""A new service is reached by those whose roles say so, once its host and the provider are deployed."""

bring_up("polled")
traffic = Traffic(mgmt01, "outline", "wiki")
raishan.succeed(f"systemd-run --quiet --collect --unit=news --property=DynamicUser=true {PROGRAMS}/answer.py 4656 news")


def listener(host):
    """Of news, on a host that may reach it."""
    found = [r["listen"] for r in manifest(host)["forwarder"]["reach"] if r["id"].endswith("/service/news")]
    return found[0] if found else ""


with subtest("the provider and the service's host are deployed: the service has its certificate"):
    assert not listener(laptop)
    began = time.monotonic()
    deploy("news", [drhorrible, raishan])
    wait_until(lambda: needs(raishan)["cert-service-news"]["state"] == "fulfilled", lambda: f"raishan has it: {needs(raishan)}")

with subtest("a laptop that nobody deployed learns of it from the provider, and alice is let in"):
    wait_until(lambda: listener(laptop), lambda: "laptop has a listener")
    laptop.wait_until_succeeds(f"runuser -u alice -- curl --silent --fail --max-time 5 http://{listener(laptop)}/ | grep news")
    print(f"       {time.monotonic() - began:.0f} s later")

with subtest("a caller is deployed: programs reach it by name"):
    deploy("news", [mgmt01])
    wait_reaches(mgmt01, "news")

with subtest("others learn nothing of it, and root of the laptop is not alice"):
    assert not listener(ursula)
    laptop.fail(f"curl --silent --fail --max-time 5 http://{listener(laptop)}/")

with subtest("no request to the other services failed"):
    result = traffic.end()
    assert not result["failed"], result
    print(f"       {result['requests']} requests, none failed")
