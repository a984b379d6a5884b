"""A service loads its secret from the credential socket: it waits for it, gets its own and no other, and never an empty one."""
# systemd: credentials from a socket

SOCKET = "/run/florete/credentials.sock"
SECRET = f"{STATE}/needs/oidc-outline/current/client-secret"
# As its author would write it: an account that systemd makes up, one secret, no file.
OUTLINE = f"""[Unit]
ConditionPathExists=
StartLimitIntervalSec=0
[Service]
Type=exec
User=
DynamicUser=true
TimeoutStartSec=30
RuntimeDirectory=outline
LoadCredential=oidc_client-secret:{SOCKET}
LoadCredential=oidc:{SOCKET}
ExecStart=
ExecStart=/bin/sh -c 'umask 077; cp $CREDENTIALS_DIRECTORY/* /run/outline/; exec sleep infinity'
"""
THIEF = f"""[Service]
Type=exec
TimeoutStartSec=30
LoadCredential=oidc_client-secret:{SOCKET}
"""
# A program that says it is systemd loading outline's secret.
SPOOF = f"""
import socket
s = socket.socket(socket.AF_UNIX)
s.bind(b"\\x00123/unit/outline.service/oidc_client-secret")
s.connect("{SOCKET}")
print(len(s.recv(4096)))
"""


def override(unit, text):
    ursula.succeed(f"mkdir -p /run/systemd/system/{unit}.d", f"cat > /run/systemd/system/{unit}.d/zz-credential.conf <<'END'\n{text}END", "systemctl daemon-reload")


def state(unit="outline.service"):
    return ursula.get_unit_property(unit, "ActiveState")


def said(text):
    ursula.wait_until_succeeds(f"journalctl --unit florete-credentials.service | grep -F -e {text!r}")


def waits(times):
    """Outline has waited so many times."""
    ursula.wait_until_succeeds(f"journalctl --unit florete-credentials.service | grep -c 'waits unit=outline' | grep -x {times}")


start_all()
deploy("base")
ursula.wait_for_unit("florete-activate.service")
# The provider has no issuing certificate yet; who does not ask it meanwhile asks
# at once when it has.
ursula.succeed("systemctl stop florete-activate.service")
override("outline.service", OUTLINE)

with subtest("only root can reach the socket, and it is there before any service"):
    assert ursula.succeed(f"stat --format=%U:%a {SOCKET} /run/florete").split() == ["root:600", "root:755"]
    assert ursula.get_unit_property("florete-credentials.service", "ActiveState") == "inactive"

with subtest("nothing is there yet: the unit waits, and fails with the reason before its start times out"):
    ursula.fail("systemctl start outline.service")
    assert ursula.get_unit_property("outline.service", "ExecMainStatus") == "243", "not failed for want of credentials"
    assert ursula.get_unit_property("outline.service", "Result") == "exit-code"
    said("not fulfilled before the unit's start times out: need oidc-outline")

override("outline.service", OUTLINE.replace("TimeoutStartSec=30", f"TimeoutStartSec={HUNG}"))

with subtest("it waits on though the process that is to answer is killed"):
    ursula.succeed("systemctl start --no-block outline.service")
    waits(2)
    ursula.succeed("systemctl kill --signal=KILL florete-credentials.service")
    waits(3)
    assert state() == "activating", state()

with subtest("stopped instead, it refuses: no unit ever starts with an empty secret"):
    ursula.succeed("systemctl stop florete-credentials.service")
    ursula.wait_until_succeeds("systemctl is-failed outline.service")
    assert ursula.get_unit_property("outline.service", "ExecMainStatus") == "243"
    ursula.fail("test -e /run/outline")

with subtest("the need is fulfilled: the unit that waits gets it and starts"):
    ursula.succeed("systemctl start --no-block outline.service")
    ursula.wait_until_succeeds("systemctl is-active florete-credentials.service")
    assert state() == "activating", state()
    sign_issuer()
    ursula.succeed("systemctl start florete-activate.service")
    wait_fulfilled([ursula])
    wait_started(ursula, "outline.service")
    ursula.wait_until_succeeds(f"cmp {SECRET} /run/outline/oidc_client-secret")
    whole = json.loads(ursula.succeed("cat /run/outline/oidc"))
    assert sorted(whole) == ["client-id", "client-secret", "issuer"] and whole["client-secret"] == ursula.succeed(f"cat {SECRET}")

with subtest("however often it is killed, units get their credentials"):
    for _ in range(8):
        ursula.succeed("systemctl restart outline.service")
        ursula.execute("systemctl kill --signal=KILL florete-credentials.service")
    assert state() == "active" and ursula.succeed("systemctl is-active florete-credentials.socket") == "active\n"

with subtest("the socket stops and starts, and its service with it"):
    ursula.succeed("systemctl start florete-credentials.service", "systemctl stop florete-credentials.socket")
    assert state("florete-credentials.service") == "inactive", state("florete-credentials.service")
    ursula.succeed("systemctl start florete-credentials.socket", "systemctl restart outline.service")

with subtest("another service is refused it, and says what it could have"):
    override("wiki.service", THIEF)
    ursula.fail("systemctl restart wiki.service")
    assert ursula.get_unit_property("wiki.service", "ExecMainStatus") == "243"
    said("wiki.service has no such credential, it has cert_bundle.pem, cert_key.pem, cert_svid.pem")

with subtest("another account is refused, even where somebody opened the socket to it"):
    spoof = f"runuser -u outline -- python3 -c '{SPOOF}'"
    code, out = ursula.execute(f"{spoof} 2>&1")
    assert code != 0 and "PermissionError" in out, out
    ursula.succeed(f"chmod 666 {SOCKET}")
    assert ursula.succeed(spoof) == "0\n"
    said("only root is answered")

with subtest("no secret is in the journal"):
    ursula.fail(f"journalctl | grep -F -f {SECRET}")
