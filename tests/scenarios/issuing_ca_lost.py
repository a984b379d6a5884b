"""The key of the issuing CA is lost, and another is signed; it is stolen, and a new root shuts the thief out."""

bring_up("base")
address = manifest(mgmt01)["providers"]["drhorrible"]["config"]["addresses"][0]
THIEF = "/run/thief"
SECRET = f"cat {STATE}/needs/oidc-outline/current/client-secret"


def thief_reads():
    """A thief with the issuing key makes himself the certificate of mgmt01 and asks for its documents."""
    return laptop.execute(f"curl --silent --insecure --max-time 5 --cert {THIEF}/chain.pem --key {THIEF}/key.pem https://{address}/config/artifact/mgmt01")[1]


with subtest("lost: the provider says so to whoever asks, and services work on"):
    traffic = Traffic(mgmt01, "outline", "wiki")
    stolen = drhorrible.succeed(f"cat {PROVIDER}/cert/issuing.key {PROVIDER}/cert/issuing.crt")
    drhorrible.succeed("rm /var/lib/florete-provider/cert/issuing.key", "sleep 1")  # it looks once a second
    lose(ursula, "cert-service-outline")
    wait_until(lambda: (needs(ursula)["cert-service-outline"].get("error") or {}).get("kind") == "transient", lambda: f"ursula waits: {needs(ursula)}")

with subtest("restarted, the provider makes another key; the operator signs it, and that is all"):
    began = time.time()
    drhorrible.succeed("systemctl restart florete-provider-cert.service")
    sign_issuer()
    wait_fulfilled()
    print(f"       {time.time() - began:.0f} s later")
    result = traffic.end()
    assert not result["failed"], result
    print(f"       {result['requests']} requests, none failed")

with subtest("stolen: its certificates are believed while the issuing one lasts; a provider wants the SSH host key too"):
    laptop.succeed(f"mkdir {THIEF}", f"cat > {THIEF}/ca.pem <<'END'\n{stolen}END")
    laptop.succeed(
        f"cd {THIEF}; openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout key.pem -subj / -out csr.pem",
        f"cd {THIEF}; printf 'subjectAltName=URI:spiffe://demo.flor/node/mgmt01\nkeyUsage=digitalSignature\nextendedKeyUsage=clientAuth,serverAuth\nbasicConstraints=CA:FALSE' > extensions",
        f"cd {THIEF}; openssl x509 -req -in csr.pem -CA ca.pem -CAkey ca.pem -CAcreateserial -days 90 -extfile extensions -out leaf.pem",
        f"cd {THIEF}; cat leaf.pem ca.pem > chain.pem",
    )
    assert "device-key" in thief_reads(), thief_reads()
    read = ursula.succeed(SECRET)

with subtest("a new root and a new key: the provider believes the thief no more"):
    began = time.time()
    drhorrible.succeed("rm /var/lib/florete-provider/cert/issuing.key /var/lib/florete-provider/cert/issuing.crt")
    deploy("new-root", [drhorrible])
    drhorrible.succeed("systemctl restart florete-provider-cert.service")
    sign_issuer("/srv/operator/next")
    wait_until(lambda: "untrusted" in thief_reads(), lambda: f"the thief is refused: {thief_reads()}")
    print(f"       {thief_reads()[:180]}")

with subtest("each host that is deployed enrols again by itself, and services work among those"):
    deploy("new-root", [raishan, ursula, mgmt01, laptop])
    wait_fulfilled()
    for host, service in [(mgmt01, "wiki"), (mgmt01, "outline"), (raishan, "outline")]:
        wait_reaches(host, service)
    print(f"       {time.time() - began:.0f} s after the old root was given up")

with subtest("a secret that the thief could read is another now, since its generation was raised"):
    wait_until(lambda: ursula.succeed(SECRET) != read, lambda: "outline has another secret")
    ursula.wait_until_succeeds("systemctl is-active outline.service")

with subtest("nothing that any host has leads to the old root"):
    old = mgmt01.succeed("sed -n 2p /srv/operator/ca.crt").strip()
    for host in machines:
        host.fail(f"grep -rF '{old}' {STATE}/needs/*/current/")
