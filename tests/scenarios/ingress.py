"""Strangers reach what is published by its name, through the nginx of a host that configures itself, or by a port of that host, and nothing else; whatever is started again, or lost, comes back."""

import html
import re
import shlex
from urllib.parse import urljoin

bring_up("ingress")
stranger = laptop
gate = mgmt01.succeed("ip -4 -o addr show scope global | awk '{print $4}' | cut -d/ -f1 | head -1").strip()
ADDRESS = "192.0.2.53"
ursula.succeed(f"systemd-run --quiet --collect --unit=resolver --property=DynamicUser=true {PROGRAMS}/resolver.py 5353 {ADDRESS}")
stranger.succeed(f"rm -f /etc/resolv.conf; echo 'nameserver {gate}' > /etc/resolv.conf")
CURL = f"curl --silent --show-error --fail --insecure --max-time 5 --resolve '*:443:{gate}' --resolve '*:80:{gate}'"


PASSWORD = "a board of one's own"
HASH = "$2a$10$OhbBcEa0XqvBX0z/WO7XR.qbbU8xdrfMiIUsg6n3cgfFxa5yc9P72"


def people(all):
    """Writes the users file of the issuer, and starts the issuer again."""
    users = [{"email": email, "username": email.split("@")[0], "userID": email, "hash": HASH, "groups": groups} for email, groups in all]
    drhorrible.succeed(f"cat > {PROVIDER}/oidc/users.hujson <<'END'\n{json.dumps(users)}\nEND", "systemctl restart florete-provider-oidc.service")


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

with subtest("strangers sign in before they reach a service that has no sign-in, until they may no longer"):
    ursula.succeed(f"systemd-run --quiet --collect --unit=board --property=DynamicUser=true {PROGRAMS}/board.py 3000")
    people([("ann@example.org", ["writers"]), ("bob@example.org", [])])
    forged = "--header 'X-Forwarded-Email: root@example.org' --header 'X-Forwarded-Groups: admins'"
    # The ingress itself reaches the issuer and its own public names, as a stranger in the cluster's network would.
    visit = f"curl --silent --show-error --insecure --max-time 20 --location --cookie /run/jar --cookie-jar /run/jar {forged} --resolve '*:443:{gate}'"
    wait_until(lambda: "<form" in mgmt01.execute(f"{visit} https://board.internal/")[1], lambda: "a stranger is led to the issuer: " + mgmt01.execute(f"{visit} https://board.internal/")[1])
    assert stranger.execute(f"{CURL} --header 'Sec-Fetch-Mode: cors' https://board.internal/")[0] == 22  # no page, and no service

    def sign_in(email):
        mgmt01.succeed("rm -f /run/jar")
        form = mgmt01.succeed(f"{visit} --write-out '\n%{{url_effective}}' https://board.internal/a?b")
        action, at = re.search(r'<form[^>]*action="([^"]*)"', form)[1], form.splitlines()[-1]
        return mgmt01.succeed(f"{visit} --data-urlencode 'login={email}' --data-urlencode {shlex.quote('password=' + PASSWORD)} {shlex.quote(urljoin(at, html.unescape(action)))}")

    said = sign_in("bob@example.org")
    assert "ann" not in said and "admins" not in said and not said.startswith("1 "), said
    said = sign_in("ann@example.org")
    assert said == "1 ann@example.org writers\n", said
    assert mgmt01.succeed("stat --format=%U:%a /var/lib/florete/needs/oidc--board/current/client-secret") == "root:400\n"
    people([("bob@example.org", [])])
    began = time.time()
    wait_until(lambda: "ann@example.org" not in mgmt01.succeed(f"{visit} https://board.internal/"), lambda: "the session ends")
    print(f"       her session ends {time.time() - began:.0f} s after she is removed")

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
