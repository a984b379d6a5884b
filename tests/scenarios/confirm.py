"""A switch of NixOS goes back to the generation before unless it is confirmed over a new connection: without network, and after a loss of power in each step."""
# minutes: 5
# operator: docs/how-to/try-a-change.md
# systemd: transient units, what goes back while units change

PROFILES = "/nix/var/nix/profiles"
TIMEOUT = 30  # a busy machine takes a while to look at all there is

# What boots a NixOS host: the system that the boot loader has.
BOOT = """[Unit]
DefaultDependencies=no
Before=sysinit.target
After=link.service local-fs.target

[Service]
Type=oneshot
ExecStart=/bin/sh -euc 'ln -sfn "$(cat /boot/default)" /run/current-system; ln -sfn /run/current-system/etc/florete/documents /etc/florete/documents; exec sh -eu /run/current-system/network'

[Install]
WantedBy=sysinit.target
"""


def system(name, revision, network="up", timeout=TIMEOUT):
    """Makes a system of ursula, of a revision of the cluster. Its checks are those that the module has."""
    nix = operator.florete.removeprefix("path:") + "/nix/units"
    expression = f'(import {nix} "").arm {{ bin = "/usr/local/bin"; timeout = "{timeout}s"; }}'
    check = json.loads(operator.succeed(f"nix-instantiate --eval --json --expr '{expression}'"))
    at = f"/nix/store/{name}"
    ursula.succeed(
        f"mkdir -p {at}/bin {at}/etc/florete {at}/units",
        f"cp {PROGRAMS}/switch_to_configuration {at}/bin/switch-to-configuration",
        f"cp -R /usr/share/revisions/{revision}/documents {at}/etc/florete; cp /usr/share/revisions/{revision}/units/florete-*.* {at}/units",
        f"echo 'ip link set eth1 {network}' > {at}/network",
        f"cat > {at}/pre-switch-checks <<'END'\n{check}END",
    )
    return at


def switch(name, action="switch"):
    """nixos-rebuild, once it has built and copied a system; its exit code and what it printed."""
    if action == "switch":
        ursula.succeed(f"cd {PROFILES}; n=$(ls | grep -c link); ln -s /nix/store/{name} system-$((n + 1))-link; ln -sfn system-$((n + 1))-link system")
    return ursula.execute(f"systemd-run --quiet --collect --wait --pipe --unit=nixos-rebuild /nix/store/{name}/bin/switch-to-configuration {action} 2>&1")


def hold(step):
    """Begins a switch that stands still at a step, and loses power there."""
    ursula.succeed(f"echo {step} > /run/hold")
    ursula.succeed("systemd-run --quiet --collect --unit=nixos-rebuild /nix/store/next/bin/switch-to-configuration switch")
    ursula.wait_for_file("/run/held")
    ursula.crash()


def change():
    code, text = ursula.execute(f"cat {STATE}/change.json")
    return json.loads(text) if code == 0 else None


def current():
    return ursula.succeed("readlink -f /run/current-system").strip().removeprefix("/nix/store/")


def profile():
    return ursula.succeed(f"readlink -f {PROFILES}/system").strip().removeprefix("/nix/store/")


def documents():
    return json.loads(ursula.succeed(f"cat {STATE}/documents/current/manifest.envelope.json"))["serial"]


def gone_back():
    return change() is None and (current(), profile(), ursula.succeed("cat /boot/default").strip()) == ("first", "first", "/nix/store/first")


def ssh(command):
    return operator.succeed(f"ssh -o ConnectTimeout=5 root@ursula '{command}' 2>&1")


bring_up("base")
first = documents()
system("first", "base")
system("cut", "without-wiki", network="down")
system("next", "without-wiki", timeout=20)
ursula.succeed(
    f"mkdir -p {PROFILES} /boot; ln -s /nix/store/first {PROFILES}/system-1-link; ln -s system-1-link {PROFILES}/system; echo /nix/store/first > /boot/default",
    "ln -s /nix/store/first /run/current-system",
    f"cat > /etc/systemd/system/boot-nixos.service <<'END'\n{BOOT}END",
    "systemctl enable --quiet boot-nixos.service",
    "printf 'UsePAM no\\n' > /etc/ssh/sshd_config.d/container.conf",
    f"mkdir -p -m 700 /root/.ssh; echo '{operator.public_key}' > /root/.ssh/authorized_keys",
    "systemctl enable --quiet --now ssh.service",
)
ssh("true")

if newest:
    with subtest("what is in force at the next boot only, or already, is no change"):
        for name, action in [("next", "boot"), ("first", "switch")]:
            code, out = switch(name, action)
            assert code == 0 and out == "" and change() is None, (name, code, out)
        ursula.succeed("echo /nix/store/first > /boot/default")

with subtest("a system that cuts the network goes back by itself: generation, boot loader, units and documents"):
    began = time.time()
    code, out = switch("cut")
    pending = change()
    assert code == 0 and pending and current() == profile() == "cut" and documents() > first, (code, out, pending)
    assert f"flor sync --confirm {pending['id']}" in out, out
    assert pending["system"]["before"] == "/nix/store/first" and pending["system"]["generation"] == "system-1-link", pending
    raishan.wait_until_fails("ping -c 1 -W 1 10.77.0.3")
    wait_until(gone_back, lambda: f"ursula has gone back: {current()}, {profile()}, {change()}")
    print(f"       {time.time() - began:.0f} s, of which {TIMEOUT} were given")
    assert documents() == first
    ursula.succeed("cmp /etc/florete/documents/manifest.json /usr/share/revisions/base/documents/manifest.json")
    raishan.wait_until_succeeds("ping -c 1 -W 1 10.77.0.3")
    wait_reaches(mgmt01, "wiki")
    assert f"undone: change {pending['id']}" in ursula.succeed("flor status")
    code, out = ursula.execute(f"flor sync --confirm {pending['id']} 2>&1")
    assert code == 1, out

if newest:
    with subtest("while one is pending no other begins, and nothing of it is in force"):
        code, out = switch("cut")
        assert code == 0
        code, out = switch("next")
        assert code != 0 and "is pending, want it confirmed or gone back" in out and current() == "cut", (code, out)
        wait_until(gone_back, lambda: "ursula has gone back")

with subtest("its own unit does not end with the programs, and other supervisors killed do not matter"):
    code, out = switch("cut")
    assert code == 0 and change()
    ursula.succeed("systemctl stop 'florete-*'", "systemctl kill --signal=KILL undo-florete.service")
    wait_until(gone_back, lambda: f"ursula has gone back: {current()}")
    ursula.succeed("systemctl start florete-rollback.path florete-activate.service florete-agent.service florete-guard.service")

for step in ["checked", "bootloader", "units", "current"] if newest else ["units"]:
    with subtest(f"power is lost after {step}: it goes back after the boot"):
        ursula.succeed(f"cd {PROFILES}; ln -sfn system-2-link system; ln -sfn /nix/store/next system-2-link")
        hold(step)
        ursula.start(allow_reboot=True)
        ursula.wait_for_unit("florete-rollback.service")
        pending = change()
        assert pending and pending["system"]["to"] == "/nix/store/next", pending
        wait_until(gone_back, lambda: f"ursula has gone back: {current()}, {profile()}, {change()}")
        assert documents() == first
        wait_reaches(mgmt01, "wiki")

with subtest("what is good is confirmed over a new connection, and stays"):
    code, out = switch("next")
    pending = change()
    assert code == 0 and pending and current() == "next", (code, out)
    print("       " + ssh(f"flor sync --confirm {pending['id']}").strip())
    assert change() is None
    ursula.wait_until_fails("systemctl is-active undo-florete.service")
    ursula.reboot()
    ursula.wait_for_unit("florete-activate.service")
    assert current() == profile() == "next" and documents() > first

# Of Nix, what flor sync calls: a cache from which a system comes, and a profile.
REALISE = """#!/bin/sh
[ "$1" = --realise ] && [ -e "/srv/cache$2" ] && cp -R "/srv/cache$2" "$2"
"""
SET = """#!/bin/sh
[ "$1 $3" = "--profile --set" ] || exit 1
n=$(($(ls "${2%/*}" | grep -c link) + 1))
ln -s "$4" "$2-$n-link"
ln -sfn "system-$n-link" "$2"
"""

if newest:
    with subtest("flor sync switches to the system that its documents name, and goes back unless that is confirmed"):
        at = f"/nix/store/{'0' * 32}-ursula"
        prepared = operator.florete.removeprefix("path:").removesuffix("/florete")
        text = operator.succeed(f"florctl publish git+file://{prepared}/cluster --cluster polled --key {prepared}/operator/signing.key --signed ~/signed --closure ursula={at} --out - 2>/dev/null")
        drhorrible.succeed(f"flor-provider import <<'END'\n{text}END")
        system(at.removeprefix("/nix/store/"), "polled", network="down", timeout=600)
        ursula.succeed(f"mkdir -p /srv/cache/nix/store; mv {at} /srv/cache{at}")

        def sync(flags):
            """Once what the watch brings, sooner or later, is confirmed."""
            while True:
                code, out = ursula.execute(f"flor sync --system {flags} 2>&1")
                if " is pending, " not in out:
                    return code, out
                wait_until(lambda: change() is None, lambda: f"what the watch brought is confirmed: {change()}")

        code, out = sync("--confirm-timeout 12s")
        left = change()  # of the watch, which brought the documents as well
        assert code != 0 and "nix-store" in out and (left is None or left["unattended"]) and current() == "next", (out, left)
        for name, script in [("nix-store", REALISE), ("nix-env", SET)]:
            ursula.succeed(f"cat > /usr/bin/{name} <<'END'\n{script}END", f"chmod +x /usr/bin/{name}")
        code, out = sync("--dry-run")
        assert code == 0 and f"/nix/store/next would be replaced by {at}" in out and current() == "next", out
        code, out = sync(f"--confirm-timeout {TIMEOUT}s")
        pending = change()
        assert code == 0 and pending and f"flor sync --confirm {pending['id']}" in out, (out, pending)
        assert f"/nix/store/{current()}" == f"/nix/store/{profile()}" == at, (current(), profile())
        wait_until(lambda: change() is None and current() == profile() == "next", lambda: f"ursula has gone back: {current()}, {profile()}")
        raishan.wait_until_succeeds("ping -c 1 -W 1 10.77.0.3")
