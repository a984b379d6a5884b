"""florctl deploy installs bundles on two fresh hosts at once, over SSH; what cuts a host off, or reports nothing, goes back by itself."""
# minutes: 5
# operator: docs/how-to/add-a-debian-host.md
# systemd: transient units, what bundles start
import re

FLAKE = f"git+file://{operator.florete.removeprefix('path:').removesuffix('/florete')}/cluster"
fresh = [ursula, raishan]


def florctl(revision, *hosts, timeout=120):
    """What the operator types, and how it ends."""
    command = f"florctl deploy {' '.join(h.name for h in hosts)} --flake '{FLAKE}' --cluster {revision} --via ssh --timeout {timeout}s"
    return f"{command} 2>&1 && echo exit 0 || echo exit $?"


def version(host):
    return host.succeed("readlink /usr/local/lib/florete/current").strip()


def documents(host):
    return json.loads(host.succeed(f"cat {STATE}/documents/current/manifest.envelope.json"))["serial"]


def show(out):
    print("       " + out.strip().replace("\n", "\n       "))


start_all()
deploy("base", [drhorrible, mgmt01, laptop])
sign_issuer()
for host in fresh:  # as its distribution made it
    host.succeed("umount /usr/local/bin", "rm -rf /etc/sysusers.d/florete.conf /etc/florete", "! command -v flor")
for host in [*fresh, drhorrible]:
    host.succeed(
        "printf 'UsePAM no\\n' > /etc/ssh/sshd_config.d/container.conf",
        f"mkdir -p -m 700 /root/.ssh; echo '{operator.public_key}' > /root/.ssh/authorized_keys",
        "systemctl enable --quiet --now ssh.service",
    )
# Of ursula, SSH knows nothing: neither address nor key.
config = operator.home.parent / "ssh"
known = config.read_text()
config.write_text(re.sub(r"Host ursula\n.*\n", "", known))

with subtest("two fresh hosts at once, of which one is found by the topology: both report, and stay"):
    began = time.time()
    out = operator.succeed(florctl("base", *fresh))
    show(out)
    assert out.endswith("exit 0\n") and out.count(": deployed: ") == 2, out
    print(f"       {time.time() - began:.0f} s")
    wait_fulfilled(fresh)
    for host in fresh:
        assert host.execute(f"test -e {STATE}/change.json")[0] == 1
        wait_started(host, "florete-agent.service")
    wait_reaches(ursula, "metrics")

if newest:
    with subtest("once more changes nothing"):
        out = operator.succeed(florctl("base", ursula))
        assert out.endswith("exit 0\n") and "nothing to do" in out, out

with subtest("a good one"):
    before, first = version(ursula), documents(ursula)
    out = operator.succeed(florctl("without-wiki", ursula))
    assert out.endswith("exit 0\n") and version(ursula) != before and documents(ursula) > first, out
    assert "; the host has flor\n" in out, out  # its program is not copied again
    good, second = version(ursula), documents(ursula)

if newest:
    with subtest("one that calls its provider where nobody is, beside a good one: it reports nothing and goes back, exit code 1"):
        config.write_text(known)  # the topology has her where she is not
        began = time.time()
        out = operator.succeed(florctl("unreachable", ursula, timeout=30))
        show(out)
        assert out.endswith("exit 1\n") and "it went back, since it was not confirmed" in out, out
        print(f"       {time.time() - began:.0f} s, of which 30 were given")
        assert version(ursula) == good and documents(ursula) == second
        wait_fulfilled([ursula])
        wait_reaches(ursula, "metrics")

with subtest("the network is lost in between: the host goes back all by itself"):
    operator.succeed(f"({florctl('reachable', ursula, timeout=30)}) > ~/out 2>&1 &")
    ursula.wait_for_file(f"{STATE}/change.json")
    ursula.block()
    wait_until(lambda: version(ursula) == good and ursula.execute(f"test -e {STATE}/change.json")[0] == 1, lambda: f"ursula has gone back: {version(ursula)}")
    ursula.unblock()
    wait_until(lambda: "\nexit " in operator.succeed("cat ~/out"), lambda: operator.succeed("cat ~/out"))
    out = operator.succeed("cat ~/out")
    show(out)
    assert out.endswith("exit 1\n"), out
    assert documents(ursula) == second
    wait_reaches(ursula, "metrics")

if newest:
    with subtest("one of two cannot be reached: the other one is deployed, exit code 1"):
        raishan.block()
        out = operator.succeed(florctl("reachable", *fresh))
        raishan.unblock()
        show(out)
        assert out.endswith("exit 1\n") and "raishan: FAILED" in out and "ursula: deployed" in out, out
        assert version(ursula) != good and documents(ursula) > second

    with subtest("a host with another SSH host key is not touched"):
        raishan.succeed("cp /etc/ssh/next /etc/ssh/ssh_host_ed25519_key", "cp /etc/ssh/next.pub /etc/ssh/ssh_host_ed25519_key.pub", "systemctl restart ssh.service")
        before = version(raishan)
        out = operator.succeed(florctl("reachable", raishan))
        assert out.endswith("exit 1\n") and "verification failed" in out.lower() and version(raishan) == before, out
