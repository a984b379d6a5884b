"""Strangers reach what is published by its name, through the nginx of a host that configures itself, or by a port of that host, and nothing else; whatever is started again, or lost, comes back."""

bring_up("ingress")
stranger = laptop
gate = mgmt01.succeed("ip -4 -o addr show scope global | awk '{print $4}' | cut -d/ -f1 | head -1").strip()
ADDRESS = "192.0.2.53"
ursula.succeed(f"systemd-run --quiet --collect --unit=resolver --property=DynamicUser=true {PROGRAMS}/resolver.py 5353 {ADDRESS}")
stranger.succeed(f"rm -f /etc/resolv.conf; echo 'nameserver {gate}' > /etc/resolv.conf")
CURL = f"curl --silent --show-error --fail --insecure --max-time 5 --resolve '*:443:{gate}' --resolve '*:80:{gate}'"


def served():
    return stranger.execute(f"{CURL} https://wiki.internal/")[1] == "wiki\n"


def by_port():
    plain = stranger.execute(f"curl --silent --max-time 5 http://{gate}:8080/")[1]
    resolved = stranger.execute("env RES_OPTIONS='timeout:1 attempts:1' getent ahostsv4 anything.example")[1]
    return plain == "wiki\n" and resolved.startswith(ADDRESS)


with subtest("strangers reach public ports, over TCP and UDP, and no other"):
    wait_until(by_port, lambda: "a stranger reaches both: " + mgmt01.execute("flor status")[1])
    stranger.fail(f"curl --silent --max-time 5 http://{gate}:4655/")

with subtest("nginx, installed as Debian has it, serves it by itself"):
    mgmt01.succeed("rm /etc/nginx/sites-enabled/default", "systemctl start nginx")
    began = time.time()
    wait_until(served, lambda: "a stranger reaches the wiki: " + stranger.execute(f"{CURL} https://wiki.internal/ 2>&1")[1])
    print(f"       {time.time() - began:.1f} s later")
    issuer = stranger.succeed(f"openssl s_client -connect {gate}:443 -servername wiki.internal </dev/null 2>/dev/null | openssl x509 -noout -issuer -ext subjectAltName")
    assert "DNS:wiki.internal" in issuer, issuer

with subtest("http leads to https, and names that are not published nowhere"):
    assert "https://wiki.internal/a?b" in stranger.succeed(f"curl --silent --head --resolve '*:80:{gate}' 'http://wiki.internal/a?b'")
    for name in ("outline.internal", "outline.demo.flor.rete"):
        stranger.fail(f"{CURL} https://{name}/")
        stranger.fail(f"{CURL} http://{name}/")

with subtest("what the ingress does is shown, and may do no more than it needs"):
    assert "wiki.internal" in mgmt01.succeed("cat /etc/nginx/conf.d/florete.conf")
    assert mgmt01.succeed("stat --format=%U:%a /var/lib/florete/needs/tls-wiki/current/key.pem") == "root:400\n"
    exposure = mgmt01.succeed("systemd-analyze security florete-ingress.service --no-pager | tail -1")
    print("       " + exposure.strip())

with subtest("nginx does not accept a file beside it: ours stays, and strangers notice nothing"):
    mgmt01.succeed("echo 'nonsense;' > /etc/nginx/conf.d/other.conf", "systemctl restart florete-ingress")
    time.sleep(3)
    assert served()
    mgmt01.succeed("rm /etc/nginx/conf.d/other.conf")

with subtest("the ingress is started again, and loses what it had"):
    mgmt01.succeed("systemctl enable nginx")
    mgmt01.crash()
    mgmt01.start(allow_reboot=True)
    wait_until(served, lambda: "it serves after a crash")
    wait_until(by_port, lambda: "public ports are open after a crash")
    mgmt01.succeed("systemctl stop florete-activate florete-agent florete-ingress nginx", f"rm -r {STATE}/*", "rm /etc/nginx/conf.d/florete.conf")
    mgmt01.crash()
    mgmt01.start(allow_reboot=True)
    wait_until(served, lambda: "it serves after the loss of all that it had")

with subtest("the agent is killed: nginx finds it again"):
    mgmt01.succeed("systemctl kill --signal=KILL florete-agent")
    wait_until(served, lambda: "it serves with another agent")
