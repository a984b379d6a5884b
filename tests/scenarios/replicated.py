"""Three provider hosts share a store: its leader is killed, a minority is cut off, and nothing is issued twice."""
PROVIDERS = [drhorrible, raishan, mgmt01]


def leads(host):
    files = "--cacert /etc/florete/store/ca.crt --cert /etc/florete/store/client.crt --key /etc/florete/store/client.key"
    return host.execute(f"curl --silent --max-time 3 {files} https://127.0.0.1:4620/metrics | grep '^etcd_server_is_leader 1'")[0] == 0


start_all()
certify_store(PROVIDERS)
with subtest("the store and all providers come up, with keys that nobody carried"):
    deploy("replicated")
    for host in PROVIDERS:
        sign_replica(host)
    wait_fulfilled()
    for host in PROVIDERS:
        wait_started(host, "florete-store.service")
        host.wait_until_succeeds(f"test $(stat -c %U:%a {PROVIDER}/cert/seal.ring | cut -d: -f2) = 600")
        host.fail(f"test -e {PROVIDER}/cert/seal.key")

with subtest("certificates of the store that an operator replaces are in use without a further command"):
    for host in PROVIDERS:
        issue_store(host)
        for file, copy in [("member.crt", "florete-store.service/member.crt"), ("client.crt", "florete-provider-cert.service/store-client.crt")]:
            host.wait_until_succeeds(f"cmp /etc/florete/store/{file} /run/credentials/{copy}")
        wait_started(host, "florete-store.service")
        wait_started(host, "florete-provider-cert.service")
    lose(ursula, "cert-service-wiki")
    wait_until(lambda: needs(ursula)["cert-service-wiki"]["state"] == "fulfilled", lambda: f"ursula has it: {needs(ursula)}")

with subtest("the leader is killed: certificates are issued again"):
    leader = next(h for h in PROVIDERS if leads(h))
    leader.succeed("systemctl kill --signal=KILL florete-store.service")
    killed = time.time()
    lose(ursula, "cert-service-wiki")
    wait_until(lambda: needs(ursula)["cert-service-wiki"]["state"] == "fulfilled", lambda: f"ursula has it: {needs(ursula)}")
    print(f"       {time.time() - killed:.1f} s after the leader of the store, {leader.name}, was killed")
    leader.wait_until_succeeds("systemctl is-active florete-store.service")

with subtest("a minority serves documents, refuses what needs the store, and says so; the majority answers"):
    raishan.block()
    lose(raishan, "config-documents")
    wait_until(lambda: needs(raishan)["config-documents"]["state"] == "fulfilled", lambda: f"raishan has its documents: {needs(raishan)}")
    lose(raishan, "cert-node")
    wait_until(lambda: needs(raishan)["cert-node"].get("error", {}).get("code") == "store", lambda: f"raishan is refused: {needs(raishan)}")
    print(f"       {needs(raishan)['cert-node']['error']['message']}")
    lose(ursula, "cert-service-outline")
    wait_until(lambda: needs(ursula)["cert-service-outline"]["state"] == "fulfilled", lambda: f"ursula has it: {needs(ursula)}")

with subtest("healed, everybody has what they need, by itself"):
    raishan.unblock()
    wait_fulfilled()

with subtest("a sealing key that an operator rotates is in use on every host"):
    rings = lambda: {json.loads(host.succeed(f"cat {PROVIDER}/cert/seal.ring"))["id"] for host in PROVIDERS}
    former = rings()
    assert "for 3 replicas" in raishan.succeed("flor-provider rotate-seal cert")
    wait_until(lambda: len(rings()) == 1 and rings() != former, lambda: f"all open the new one: {rings()}")
    lose(ursula, "cert-service-wiki")
    wait_until(lambda: needs(ursula)["cert-service-wiki"]["state"] == "fulfilled", lambda: f"ursula has it: {needs(ursula)}")

with subtest("a member that lost its disk does not join by itself, and does by what docs/how-to/run-providers-on-three-hosts.md has an operator type"):
    files = "--cacert /etc/florete/store/ca.crt --cert /etc/florete/store/client.crt --key /etc/florete/store/client.key"
    etcdctl = f"etcdctl {files} --endpoints https://127.0.0.1:4620"
    member = next(m for m in drhorrible.succeed(f"{etcdctl} member list").splitlines() if ", raishan, " in m).split(", ")
    raishan.succeed("systemctl stop florete-store", "rm -rf /var/lib/florete-store/member", "systemctl start --no-block florete-store")
    raishan.wait_until_succeeds("journalctl --unit florete-store | grep 'has already been bootstrapped'")
    drhorrible.succeed(f"{etcdctl} member remove {member[0]}")
    environment = drhorrible.succeed(f"{etcdctl} member add raishan --peer-urls {member[3]} | grep ^ETCD_INITIAL_CLUSTER")
    raishan.succeed(f"cat > /run/florete-store.env <<'END'\n{environment}END", "rm -rf /var/lib/florete-store/member; systemctl restart florete-store")
    drhorrible.wait_until_succeeds(f"{etcdctl} endpoint health --cluster")
    mgmt01.succeed("systemctl stop florete-store")  # so it counts
    lose(ursula, "cert-service-wiki")
    wait_until(lambda: needs(ursula)["cert-service-wiki"]["state"] == "fulfilled", lambda: f"ursula has it: {needs(ursula)}")
    mgmt01.succeed("systemctl start florete-store")

with subtest("nothing was issued twice"):
    for host in PROVIDERS:
        rows = [json.loads(row) for row in host.succeed("flor-provider audit --json").splitlines()]
        keys = [row["key"] for row in rows if row["decision"] == "granted" and not row.get("replayed")]
        assert keys and len(keys) == len(set(keys)), sorted(keys)
    print(f"       {len(keys)} requests, each granted once")
