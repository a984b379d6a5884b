"""On plain Debian a bundle installs, upgrades, goes back and is removed, as an archive and as a package; the agent works after each step."""
# minutes: 4
# systemd: sandboxes of units, packages, what a start that fails leaves
# bundles: ursula/base.tar.gz ursula/base.deb ursula/without-wiki.tar.gz ursula/without-wiki.deb

BUNDLES = "/root/bundles"
INSTALL = f"{BUNDLES}/base/florete-ursula/install.sh"


def tree():
    """Files of ursula that an installation could touch, with their owners, modes and
    sizes. Accounts stay on a host, as Debian has it; names are looked at below."""
    accounts = " ".join(f"! -path 'etc/{name}*'" for name in ("passwd", "group", "shadow", "gshadow", "hosts"))
    return set(ursula.succeed(f"cd / && find etc usr/local usr/bin usr/lib/s* usr/share var/lib -xdev ! -type d {accounts} ! -path 'var/lib/dpkg/*' ! -path 'var/lib/systemd/*' "
                              "-printf '%p %l %s %m %U\\n'").splitlines())


def works():
    """The forwarder runs, and programs reach services by name."""
    ursula.wait_for_unit("florete-activate.service")
    wait_fulfilled([ursula])
    ursula.wait_until_succeeds("systemctl is-active florete-agent.service")
    wait_reaches(ursula, "metrics")
    assert ursula.succeed("systemctl --failed --no-legend") == "", "a unit has failed"


def runs(revision):
    """Which documents are in force, wherever they lie."""
    want = ursula.succeed(f"cat /usr/share/revisions/{revision}/documents/manifest.json")
    ursula.wait_until_succeeds(f"cmp {STATE}/documents/current/manifest.json /usr/share/revisions/{revision}/documents/manifest.json")
    assert ursula.succeed("cat /etc/florete/documents/manifest.json") == want


start_all()
deploy("base", [drhorrible, raishan, mgmt01, laptop])
sign_issuer()
# The host as its distribution made it: none of our commands, units or names.
ursula.succeed("umount /usr/local/bin", "rm -rf /etc/sysusers.d/florete.conf /etc/florete", "! command -v flor")
for revision in ("base", "without-wiki"):
    ursula.succeed(f"mkdir {BUNDLES}/{revision}", f"tar xzf {BUNDLES}/{revision}.tar.gz -C {BUNDLES}/{revision}")
ursula.succeed("printf '127.0.0.1 localhost\\n10.0.0.9 printer # mine' > /etc/hosts")
hosts = ursula.succeed("cat /etc/hosts")
empty = tree()

with subtest("a dry run says what it would do, and changes nothing"):
    said = ursula.succeed(f"{INSTALL} --dry-run")
    assert "+ systemctl restart florete-activate.service" in said, said
    assert tree() == empty

with subtest("it installs: the host enrols, and programs just connect"):
    ursula.succeed(INSTALL)
    works()
    runs("base")
    assert ursula.succeed("cat /etc/hosts").startswith(hosts + "\n#"), ursula.succeed("cat /etc/hosts")
    ursula.succeed("grep rmem_max /etc/sysctl.d/60-florete.conf")
    assert "Check whether this account reaches" in ursula.succeed("cat /usr/local/share/man/man1/flor-ping.1")
    first, certificate = ursula.succeed("readlink /usr/local/lib/florete/current"), serial(ursula, "cert-node")

with subtest("again it finds nothing to do, and restarts nothing"):
    pid = ursula.get_unit_property("florete-agent.service", "MainPID")
    assert "nothing to do" in ursula.succeed("florete-install")
    assert pid == ursula.get_unit_property("florete-agent.service", "MainPID")

with subtest("another bundle is an upgrade; the certificate stays"):
    ursula.succeed(f"{BUNDLES}/without-wiki/florete-ursula/install.sh")
    works()
    runs("without-wiki")
    ursula.fail("systemctl cat florete-need-cert-service-wiki.path")
    assert serial(ursula, "cert-node") == certificate

with subtest("it goes back to the programs before, again and again, and keeps the documents in force, also after a reboot"):
    second = ursula.succeed("readlink /usr/local/lib/florete/current")
    for version in (first, second, first):
        ursula.succeed("florete-install --rollback")
        works()
        runs("without-wiki")
        assert ursula.succeed("readlink /usr/local/lib/florete/current") == version
    ursula.reboot()
    ursula.execute("umount /usr/local/bin")
    ursula.wait_for_unit("multi-user.target")
    works()
    runs("without-wiki")
    assert ursula.succeed("readlink /usr/local/lib/florete/current") == first and serial(ursula, "cert-node") == certificate

if newest:
    with subtest("without an identity, nothing of it blocks, and it goes back all the same"):
        ursula.succeed("systemctl stop florete-activate.service", f"mv {STATE}/needs/cert-node/current/svid.pem /root/")
        began = time.time()
        for version in (second, first):
            ursula.succeed("florete-install --rollback")
            assert ursula.succeed("readlink /usr/local/lib/florete/current /usr/local/lib/florete/previous").split() == [version.strip(), (first + second).replace(version, "").strip()]
            ursula.fail("test -e /usr/local/lib/florete/unfinished")
        print(f"       {time.time() - began:.0f} s for both")
        ursula.succeed(f"test -e {STATE}/needs/cert-node/current/svid.pem || mv /root/svid.pem {STATE}/needs/cert-node/current/", "systemctl restart florete-activate.service")
        works()
        certificate = serial(ursula, "cert-node")

    with subtest("the version before is there whole: installed anew, it brings its documents too"):
        ursula.succeed("florete-install --rollback")
        ursula.succeed("/usr/local/lib/florete/previous/install.sh")
        works()
        runs("base")
        assert ursula.succeed("readlink /usr/local/lib/florete/current") == first

DROP = "/run/systemd/system/florete-activate.service.d"
REFUSE = f"mkdir -p {DROP}; printf '[Service]\\nExecStartPre=/bin/false\\n' > {DROP}/refuse.conf; systemctl daemon-reload"
with subtest("a unit that does not start is named, and nothing is left half done"):
    ursula.succeed(REFUSE)
    code, said = ursula.execute(f"{BUNDLES}/without-wiki/florete-ursula/install.sh 2>&1")
    assert code == 1 and "is installed, but not all units of it have started" in said, said
    ursula.fail("test -e /usr/local/lib/florete/unfinished")
    ursula.succeed(f"rm -r {DROP}", "systemctl daemon-reload", "systemctl restart florete-activate.service")
    works()

with subtest("removed, nothing of it is left but keys and what was fetched; purged, nothing at all"):
    print("       " + ursula.succeed("florete-install --remove | grep kept").strip().split("\n")[0])
    ursula.fail("test -e /etc/florete")
    left = tree() ^ empty
    assert left and all(line.startswith("var/lib/florete/") for line in left), left
    assert ursula.succeed("cat /etc/hosts") == hosts + "\n"
    ursula.fail("pgrep -x flor")
    assert not ursula.succeed("systemctl list-units --no-legend 'florete-*'"), "units of it are still active"
    ursula.succeed(f"{INSTALL} --remove --purge")
    assert tree() == empty, tree() ^ empty

with subtest("the package installs, upgrades and goes back likewise"):
    for revision in ("base", "without-wiki", "base"):
        ursula.succeed(f"dpkg --install {BUNDLES}/{revision}.deb")
        works()
        runs(revision)
    ursula.succeed("test -e /usr/share/man/man1/flor-ping.1")
    certificate = serial(ursula, "cert-node")

with subtest("the package is whole where a unit does not start"):
    ursula.succeed(REFUSE)
    said = ursula.succeed(f"dpkg --install {BUNDLES}/without-wiki.deb 2>&1")
    assert "not all have started" in said and ursula.succeed("dpkg --audit") == "", said
    ursula.succeed(f"rm -r {DROP}", "systemctl daemon-reload", "systemctl restart florete-activate.service", f"dpkg --install {BUNDLES}/base.deb")
    works()

if newest:
    with subtest("the package removed keeps the identity, and has it when it comes back"):
        ursula.succeed("dpkg --remove florete")
        ursula.fail("pgrep -x flor")
        assert not ursula.succeed("systemctl list-units --no-legend 'florete-*'"), "units of it are still active"
        assert ursula.succeed("cat /etc/hosts") == hosts + "\n"
        ursula.succeed(f"dpkg --install {BUNDLES}/base.deb")
        works()
        assert serial(ursula, "cert-node") == certificate

with subtest("the package purged leaves nothing"):
    ursula.succeed("dpkg --purge florete")
    assert tree() == empty, tree() ^ empty
    ursula.succeed("systemctl list-unit-files --no-legend | (! grep florete)")

if newest:
    with subtest("purged where its directory is a mount point, and where there were no hosts before"):
        ursula.succeed("rm /etc/hosts", f"mkdir {STATE}", f"mount -t tmpfs tmpfs {STATE}", INSTALL)
        works()
        ursula.succeed("florete-install --remove --purge")
        assert ursula.succeed(f"ls -A {STATE}") == ""
        ursula.fail("test -e /etc/hosts")
