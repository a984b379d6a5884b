"""A host whose files are pushed to it moves to activation one need at a time; its service keeps running, with the secrets it has."""
# common cluster: base

bring_up("base")
PUSHED, NEED = "/etc/outline/oidc", f"{STATE}/needs/oidc-outline"
FILES = ["client-id", "client-secret", "issuer"]


def serve(directory):
    """What the operator deploys: outline reads its files in a directory, and answers with the secret that it was started with."""
    ursula.succeed(
        "mkdir -p /run/systemd/system/outline.service.d",
        f"""cat > /run/systemd/system/outline.service.d/files.conf <<'END'
[Unit]
ConditionPathExists=
[Service]
ExecStart=
ExecStart=/bin/sh -c 'exec {PROGRAMS}/answer.py 4654 "$(cat {directory}/client-secret)"'
END""",
        "systemctl daemon-reload",
        "systemctl restart outline.service",
    )


def answered():
    """The secret that outline runs with."""
    return mgmt01.wait_until_succeeds("curl --silent --fail --max-time 5 http://outline.demo.flor.rete/").strip()


def pids():
    return ursula.succeed("systemctl show --property=MainPID --value outline.service").strip()


with subtest("as it was: files pushed by hand, which the service reads, and activation that never had this need"):
    ursula.succeed("systemctl stop florete-activate.service", f"mkdir -p {PUSHED}; mv $(realpath {NEED}/current)/* {PUSHED}/", f"rm -r {NEED}")
    ursula.succeed(f"rm {PUSHED}/client-secret; echo by-hand > {PUSHED}/client-secret")
    serve(PUSHED)
    pushed, began = answered(), pids()
    assert pushed == "by-hand", pushed
    asked = decisions(documents=False)

with subtest("taken over: the same files, of the declared owner and modes; no provider is asked, no unit is told"):
    ursula.succeed("flor activate --closure /etc/florete/documents --owner florete --adopt oidc-outline=/etc/outline/oidc --once")
    ursula.succeed("systemctl start florete-activate.service")
    for file in FILES:
        ursula.succeed(f"cmp {PUSHED}/{file} {NEED}/current/{file}")
    ursula.succeed(f"test $(stat --dereference --format=%U:%a {NEED}/current/client-secret) = outline:400")
    wait_fulfilled([ursula])
    assert decisions(documents=False) == asked and pids() == began, (decisions(documents=False) - asked, pids(), began)

with subtest("the service reads them where activation keeps them: nobody is signed out"):
    serve(f"{NEED}/current")
    assert answered() == pushed
    began = pids()

with subtest("pushing has ended: nothing needs what was pushed, not even a reboot"):
    ursula.succeed("rm -r /etc/outline")
    ursula.reboot()
    serve(f"{NEED}/current")
    assert answered() == pushed
    assert decisions(documents=False) == asked

with subtest("asked for again: the provider's answer is in force, and the service is started with it once"):
    ursula.wait_for_unit("florete-activate.service")
    began = pids()
    ursula.succeed("flor refetch oidc-outline")
    wait_until(lambda: decisions(documents=False) > asked, lambda: "the provider is asked")
    wait_until(lambda: pids() != began, lambda: "outline is started again")
    assert answered() == ursula.succeed(f"cat {NEED}/current/client-secret").strip()
    assert not [n for n, s in needs(ursula).items() if s["state"] != "fulfilled"]

ursula.succeed("rm -r /run/systemd/system/outline.service.d; systemctl daemon-reload; systemctl restart outline.service")
