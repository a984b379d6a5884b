"""A change that was a mistake is undone within seconds: on a host by its previous generation, everywhere by publishing what was."""

bring_up("polled")
traffic = Traffic(mgmt01, "outline")
hosts = [raishan, ursula, mgmt01, laptop]


def accepted(host):
    return json.loads(host.succeed(f"cat {STATE}/documents/current/manifest.envelope.json"))["serial"]


def closure(host):
    """What activation took from the host's own generation, the last time that this was another."""
    return json.loads(host.succeed(f"cat {STATE}/activation.json"))["closure"]


with subtest("the mistake: the wiki is closed for everyone"):
    before = everywhere(closure, hosts)
    deploy("wiki-closed", hosts)
    wait_until(lambda: not reaches(mgmt01, "wiki"), lambda: "wiki is closed")
    wait_until(lambda: all(a != b for a, b in zip(everywhere(closure, hosts), before, strict=True)), lambda: "every host has seen its deployment")

with subtest("previous generations of its host and a caller open it again for these two"):
    began = time.time()
    deploy("polled", [ursula, mgmt01])
    wait_reaches(mgmt01, "wiki")
    print(f"       {time.time() - began:.1f} s later")

with subtest("the provider, which serves the mistake to all, does not undo that"):
    publish("wiki-closed")
    asked = decisions()
    wait_until(lambda: decisions() > asked + 15, lambda: "hosts ask for documents again and again")
    assert reaches(mgmt01, "wiki")
    assert accepted(ursula) == accepted(mgmt01) < accepted(raishan) == accepted(drhorrible), everywhere(accepted)

with subtest("what was is published as something new: every host has it, and none is touched"):
    began = time.time()
    deploy("polled-again", [drhorrible])
    wait_until(lambda: len(set(everywhere(accepted))) == 1, lambda: f"all agree: {everywhere(accepted)}")
    laptop.wait_until_succeeds("flor status | grep wiki")
    wait_reaches(mgmt01, "wiki")
    print(f"       {time.time() - began:.1f} s later")

with subtest("no request to the other service failed"):
    result = traffic.end()
    assert not result["failed"], result
    print(f"       {result['requests']} requests, none failed")
