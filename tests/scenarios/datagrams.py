"""Programs that know nothing of Florete reach a service over UDP, through renewals and restarts."""
# common cluster: brief

bring_up("brief")
deploy("datagrams")
wait_fulfilled()
ADDRESS = "192.0.2.53"
ursula.succeed(f"systemd-run --quiet --collect --unit=resolver --property=DynamicUser=true {PROGRAMS}/resolver.py 5353 {ADDRESS}")
wait_until(lambda: "/service/names" in json.dumps(manifest(mgmt01)), lambda: "mgmt01 knows the service")
LISTENER = next(r["listen"] for r in manifest(mgmt01)["forwarder"]["reach"] if r["id"].endswith("/service/names"))
CERTIFICATES = [(ursula, "cert-service-names"), (mgmt01, "cert-node")]
for host in machines:
    host.succeed(f"mv /etc/resolv.conf /root/; echo 'nameserver {LISTENER.split(':')[0]}' > /etc/resolv.conf")


def resolves(host, as_user="root"):
    """Does the C library's own resolver find a name?"""
    code, out = host.execute(f"runuser -u {as_user} -- env RES_OPTIONS='timeout:1 attempts:1' getent ahostsv4 anything.example")
    return code == 0 and out.startswith(ADDRESS)


def refused(host):
    return json.loads(host.succeed("flor status --json"))["refusals"]


with subtest("the C library asks the name server across the cluster"):
    wait_until(lambda: resolves(mgmt01), lambda: f"mgmt01 resolves: {mgmt01.execute('flor status')[1]}")
    wait_until(lambda: resolves(laptop, "alice"), lambda: "alice resolves")

with subtest("who may not reach it is not heard, and root of the laptop is not alice"):
    assert not resolves(laptop) and not resolves(mgmt01, "nobody") and not resolves(raishan)
    for host in (laptop, mgmt01):
        assert refused(host), refused(host)
        print(f"       {host.name} refused {refused(host)}")

mgmt01.succeed(f"systemd-run --quiet --collect --unit=steady {PROGRAMS}/steady.py /run/steady.json names.demo.flor.rete 53")
mgmt01.wait_for_file("/run/steady.json")


def steady():
    return json.loads(mgmt01.succeed("cat /run/steady.json"))


seen = {(host.name, need): {serial(host, need)} for host, need in CERTIFICATES}


def renewed():
    for host, need in CERTIFICATES:
        seen[host.name, need].add(serial(host, need))
    return all(len(serials) > 2 for serials in seen.values())


with subtest("a program that holds one socket, found by name, does not notice renewals"):
    wait_until(renewed, lambda: f"all are renewed: {[(k, len(v)) for k, v in seen.items()]}")
    wait_until(lambda: steady()["asked"] >= 100, lambda: f"questions go on: {steady()}")
    result = steady()
    assert result["lost"] <= result["asked"] / 100, result
    print(f"       {result['asked']} questions, {result['lost']} lost")

with subtest("nor does it need to do anything when forwarders and the service are started again"):
    for host, unit in ((ursula, "florete-agent"), (mgmt01, "florete-agent"), (ursula, "resolver")):
        before = steady()
        began = time.monotonic()
        if unit == "resolver":
            ursula.succeed(f"systemctl stop resolver; systemd-run --quiet --collect --unit=resolver --property=DynamicUser=true {PROGRAMS}/resolver.py 5353 {ADDRESS}")
        else:
            host.succeed(f"systemctl restart {unit}")
        def answered():
            now = steady()
            return now["asked"] - now["lost"] > before["asked"] - before["lost"] + 20
        wait_until(answered, lambda: f"answers come again: {before}, {steady()}")
        print(f"       {unit} of {host.name}: {steady()['lost'] - before['lost']} of {steady()['asked'] - before['asked']} lost, 20 answers after {time.monotonic() - began:.1f} s")

mgmt01.succeed("systemctl stop steady; rm /run/steady.json*")
ursula.succeed("systemctl stop resolver")
for host in machines:
    host.succeed("mv /root/resolv.conf /etc/")
deploy("brief")
