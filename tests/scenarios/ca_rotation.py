"""The root is replaced under load by two edits of the flake, with one host away for the whole of it: no host is given a command, and no request fails."""
# minutes: 6
# operator: docs/how-to/rotate-the-root.md
import re

bring_up("one-root")
PREPARED = operator.florete.removeprefix("path:").removesuffix("/florete")
KEY = f"--key {PREPARED}/operator/signing.key --signed ~/signed"
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


def shell(text):
    """What the operator types at mgmt01, whose forwarder leads to the provider."""
    (operator.home / "hosts").write_text(mgmt01.succeed("cat /etc/hosts"))
    return operator.succeed(f"mount --bind ~/hosts /etc/hosts\n{text}", at="mgmt01")


def florctl(command):
    """A command of the cluster, and how it ends."""
    return shell(f"florctl {command} git+file://$HOME/cluster --cluster one-root 2>&1 && echo exit 0 || echo exit $?")


def watch():
    """florctl ca rotate --watch, which goes on until the former root is retired."""
    shell("nohup florctl ca rotate git+file://$HOME/cluster --cluster one-root --dir ~/root --watch --without laptop >> ~/watch 2>&1 < /dev/null & echo $! > ~/watch.pid")


def interrupt():
    operator.succeed("kill $(cat ~/watch.pid); while kill -0 $(cat ~/watch.pid) 2> /dev/null; do sleep 0.1; done")


def wait_said(text):
    return wait_until(lambda: text in operator.succeed("cat ~/watch"), lambda: f"it says {text!r}: {operator.succeed('cat ~/watch')}")


def edit(roots):
    """The operator lists other roots in the flake, and publishes that."""
    operator.succeed(f"cd ~/cluster; sed -i 's|^      roots = .*|      roots = [ {roots} ];|' flake.nix; git add --all; git commit --quiet --message '{roots}'")
    out = florctl(f"publish {KEY} --without laptop")
    assert out.endswith("exit 0\n"), out


def waits(out):
    """The hosts that are named."""
    return {line.split()[2].rstrip(":") for line in out.splitlines() if line.startswith("waits for ")}


def unchanged():
    return operator.succeed("cmp -s ~/root/ca.crt ~/former.crt && echo same || echo other").strip() == "same"


def trusts(host):
    return len(manifest(host)["trust"]["roots"])


def reported(many):
    status = florctl("ca status --dir ~/root")
    return any(f"{n} of 5" in status for n in many)


out = florctl(f"publish {KEY}")
assert out.endswith("exit 0\n"), out
wait_until(lambda: reported([4, 5]), lambda: "hosts report")
# For minutes, so not as often as elsewhere.
traffic = [Traffic(mgmt01, "wiki", "outline", pause=0.1), Traffic(raishan, "outline", pause=0.1)]
held = Held(mgmt01, "outline")
former = {m.name: serial(m, "cert-node") for m in there}
laptop.block()

with subtest("the next root is made, and the operator reads which edit of the flake comes first"):
    watch()
    wait_said("next: copy ")
    name = re.search(r"root-[0-9a-f]{8}\.crt", operator.succeed("cat ~/watch"))[0]
    assert unchanged()

with subtest("published, the next root is trusted wherever hosts verify, by their documents alone"):
    operator.succeed(f"cp ~/root/next.crt ~/cluster/{name}")
    interrupt()
    began = time.monotonic()
    edit(f"./ca.crt ./{name}")
    wait_until(lambda: waits(florctl("ca status --dir ~/root")) == {"laptop"}, lambda: f"all others acknowledge: {florctl('ca status --dir ~/root')}")
    out = florctl("ca rotate --dir ~/root")
    assert "waits for laptop: does not trust it" in out and out.endswith("exit 2\n") and unchanged(), out
    assert all(trusts(m) == 2 and serial(m, "cert-node") == former[m.name] for m in there)
    print(f"       all but laptop {time.monotonic() - began:.0f} s after it was published, without a request for a certificate")

with subtest("started anew it switches, and hosts renew their certificates by themselves"):
    began = time.monotonic()
    watch()
    wait_said("the new root, which signs now")
    wait_said("drhorrible issues below the new root")
    interrupt()
    watch()
    wait_said("next: remove the former root")
    assert all(serial(m, "cert-node") != former[m.name] for m in there)
    print(f"       {time.monotonic() - began:.0f} s, by certificates that live for a day")
    assert not held.so_far()["error"], held.so_far()
    since = Held(raishan, "outline")

with subtest("without the former root in the flake it is retired, once no host that is there trusts it"):
    began = time.monotonic()
    edit(f"./{name}")
    wait_said("is retired: no host trusts it")
    operator.succeed("while kill -0 $(cat ~/watch.pid) 2> /dev/null; do sleep 0.1; done")
    assert not set(operator.succeed("ls ~/root").split()) & {"old.crt", "old.key", "next.crt", "next.key"}, operator.succeed("ls ~/root")
    assert all(trusts(m) == 1 for m in there)
    out = florctl("ca status --dir ~/root --without laptop")
    assert "rotation: steady" in out and "4 of 4" in out and out.endswith("exit 0\n"), out
    print(f"       {time.monotonic() - began:.0f} s")

with subtest("no request failed; of the connections that were open, those that the former root had vouched for were closed at its end"):
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
        florctl compile git+file://$HOME/cluster --cluster one-root --host laptop --out ~/laptop/documents
        florctl units git+file://$HOME/cluster --cluster one-root --host laptop --out ~/laptop/units
        ssh root@laptop mkdir -p {REVISIONS}/rotated
        tar -C ~/laptop -c documents units | ssh root@laptop tar -x -C {REVISIONS}/rotated
    """)
    laptop.succeed("deploy rotated")
    wait_fulfilled([laptop])
    wait_until(lambda: reported([5]), lambda: f"it reports: {florctl('ca status --dir ~/root')}")
