"""The root is replaced under load, with one host away for the whole of it: every step waits for all others, and no request fails."""
# operator: modules/README.md

bring_up("one-root")
PREPARED = operator.florete.removeprefix("path:").removesuffix("/florete")
KEY = f"--key {PREPARED}/operator/signing.key"
REVISIONS = "/usr/share/revisions"
for host in (drhorrible, laptop):
    host.succeed(
        "printf 'UsePAM no\\n' > /etc/ssh/sshd_config.d/container.conf",
        f"mkdir -p -m 700 /root/.ssh; echo '{operator.public_key}' > /root/.ssh/authorized_keys",
        "systemctl enable --quiet --now ssh.service",
    )
there = [m for m in machines if m is not laptop]
# The operator has the flake, and the root outside of it.
operator.succeed(f"cp -r {PREPARED}/cluster ~/cluster; mkdir ~/root; cp {PREPARED}/operator/ca.crt {PREPARED}/operator/ca.key ~/root/; cp ~/root/ca.crt ~/former.crt")


def florctl(command, revision):
    """What the operator types at mgmt01, whose forwarder leads to the provider, and how it ends."""
    (operator.home / "hosts").write_text(mgmt01.succeed("cat /etc/hosts"))
    text = f"florctl {command} git+file://$HOME/cluster --cluster {revision} 2>&1 && echo exit 0 || echo exit $?"
    return operator.succeed(f"mount --bind ~/hosts /etc/hosts\n{text}", at="mgmt01")


def rotate(revision, *flags):
    return florctl(f"ca rotate --dir ~/root {' '.join(flags)}", revision)


def waits(out):
    """The hosts that are named."""
    return {line.split()[2].rstrip(":") for line in out.splitlines() if line.startswith("waits for ")}


def publish_as(revision, *flags):
    out = florctl(f"publish {KEY} {' '.join(flags)}", revision)
    assert out.endswith("exit 0\n"), out


def unchanged():
    return operator.succeed("cmp -s ~/root/ca.crt ~/former.crt && echo same || echo other").strip() == "same"


def trusts(host):
    return len(manifest(host)["trust"]["roots"])


publish_as("one-root")
wait_until(lambda: "4 of 5" in florctl("ca status --dir ~/root", "one-root") or "5 of 5" in florctl("ca status --dir ~/root", "one-root"), lambda: "hosts report")
traffic = [Traffic(mgmt01, "wiki", "outline"), Traffic(raishan, "outline")]
held = Held(mgmt01, "outline")
laptop.block()

with subtest("prepared: the next root is made, and nothing goes on before it is published"):
    out = rotate("one-root")
    assert "the next root" in out and out.endswith("exit 0\n"), out
    operator.succeed("cp ~/root/next.crt ~/cluster/next.crt; cd ~/cluster; git commit --quiet --all --message next")
    out = rotate("one-root")
    assert "next: copy " in out and out.endswith("exit 2\n") and unchanged(), out

with subtest("it does not sign while a host has not acknowledged it, and names each"):
    out = rotate("both-roots")
    assert waits(out) == {m.name for m in machines} and out.endswith("exit 2\n"), out
    began = time.monotonic()
    publish_as("both-roots")
    wait_until(lambda: waits(rotate("both-roots")) == {"laptop"}, lambda: f"all others acknowledge: {rotate('both-roots')}")
    out = rotate("both-roots")
    assert "waits for laptop: does not trust it" in out and out.endswith("exit 2\n") and unchanged(), out
    assert all(trusts(m) == 2 for m in there)
    print(f"       all but laptop {time.monotonic() - began:.0f} s after it was published")

with subtest("activated without the host that is away: the issuing certificate is signed anew"):
    out = rotate("both-roots", "--without laptop")
    assert "the new root, which signs now" in out and out.endswith("exit 0\n") and not unchanged(), out
    for line in [line for line in out.splitlines() if line.startswith("  ssh root@")]:
        operator.succeed(line)

with subtest("the former root stays until no certificate leads to it"):
    out = rotate("both-roots", "--without laptop")
    assert waits(out) and out.endswith("exit 2\n"), out
    began = time.monotonic()
    wait_until(lambda: "next: remove the former root" in rotate("both-roots", "--without laptop"), lambda: f"all are renewed: {rotate('both-roots', '--without laptop')}")
    assert "waits for laptop" in rotate("both-roots")
    print(f"       {time.monotonic() - began:.0f} s later, by certificates that live for 30")
    assert not held.so_far()["error"], held.so_far()
    since = Held(raishan, "outline")

with subtest("retired, once no host that is there trusts it"):
    publish_as("next-root", "--without laptop")
    wait_until(lambda: "is retired: no host trusts it" in rotate("next-root", "--without laptop"), lambda: f"it is retired: {rotate('next-root', '--without laptop')}")
    assert operator.succeed("ls ~/root").split() == ["ca.crt", "ca.key"], operator.succeed("ls ~/root")
    assert all(trusts(m) == 1 for m in there)
    out = florctl("ca status --dir ~/root --without laptop", "next-root")
    assert "rotation: steady" in out and "4 of 4" in out and out.endswith("exit 0\n"), out

with subtest("no request failed; of the connections that were open, those that the former root had vouched for were closed at its end"):
    seen = {(m.name, n): serial(m, n) for m, n in [(mgmt01, "cert-node"), (ursula, "cert-service-wiki")]}
    wait_until(lambda: all(serial(m, n) != seen[m.name, n] for m, n in [(mgmt01, "cert-node"), (ursula, "cert-service-wiki")]), lambda: "certificates are renewed after it")
    for t in traffic:
        result = t.end()
        assert not result["failed"], result
        print(f"       {t.host.name}: {result['requests']} requests, none failed")
    assert held.end()["error"], "a connection outlived the root by which its ends know each other"
    result = since.end()
    assert not result["error"], result
    print(f"       {result['requests']} over one connection since the new root signs")

with subtest("the host that was away gets in again once it is deployed by hand"):
    laptop.unblock()
    assert trusts(laptop) == 1 and not reaches(laptop, "outline")
    operator.succeed(f"""
        florctl compile git+file://$HOME/cluster --cluster next-root --host laptop --out ~/laptop/documents
        florctl units git+file://$HOME/cluster --cluster next-root --host laptop --out ~/laptop/units
        ssh root@laptop rm -rf {REVISIONS}/next-root/documents {REVISIONS}/next-root/units
        tar -C ~/laptop -c documents units | ssh root@laptop tar -x -C {REVISIONS}/next-root
    """)
    laptop.succeed("deploy next-root")
    wait_fulfilled([laptop])
    wait_until(lambda: "5 of 5" in florctl("ca status --dir ~/root", "next-root"), lambda: f"it reports: {florctl('ca status --dir ~/root', 'next-root')}")
