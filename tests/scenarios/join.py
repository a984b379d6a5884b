"""A host that the flake has no key of comes in by a token and an operator, whatever is killed while it waits, and goes on by an identity file; it is suspended and resumed."""
# minutes: 3
# operator: docs/how-to/add-a-machine-by-token.md

others = [drhorrible, ursula, mgmt01, laptop]
bring_up("unoperated", others)
PREPARED = operator.florete.removeprefix("path:").removesuffix("/florete")
KEY = f"--key {PREPARED}/operator/signing.key"
SIGNS = f"{KEY} --signed ~/signed"


def florctl(command, revision="joining"):
    """What root of mgmt01 types, and how it ends. That host has no Nix: this machine lends its programs."""
    (operator.home / "hosts").write_text(mgmt01.succeed("cat /etc/hosts"))
    words, _, flags = command.partition(" --")
    text = f"florctl {words} git+file://{PREPARED}/cluster --cluster {revision} {'--' + flags if flags else ''} 2>&1 && echo exit 0 || echo exit $?"
    return operator.succeed(f"mount --bind ~/hosts /etc/hosts\n{text}", at="mgmt01")


def joins():
    out = florctl("join list --json")
    return {j["host"]: j for j in json.loads(out.removesuffix("exit 0\n"))} if out.endswith("exit 0\n") else {}


def error(host, need):
    return (needs(host)[need].get("error") or {}).get("code")


def serial(host):
    """Of the certificate by which a host is known."""
    return host.succeed(f"openssl x509 -noout -serial -in {STATE}/needs/cert-node/current/svid.pem")


publish("joining")
wait_until(lambda: florctl("join list").endswith("exit 0\n"), lambda: f"the provider answers: {florctl('join list')}")
traffic = Traffic(mgmt01, "wiki")

with subtest("a host that has no SSH host key in the flake waits, and its status says for what"):
    raishan.start(allow_reboot=True)
    # Its TPM is a process, which is there before activation as a device is.
    raishan.succeed("printf '%s\\n' > /etc/systemd/system/tpm.service [Unit] Before=florete-activate.service [Service] StateDirectory=tpm "
                    "'ExecStart=swtpm socket --tpm2 --tpmstate dir=/var/lib/tpm --server type=unixio,path=/dev/tpmrm0 --flags not-need-init,startup-clear' "
                    "'ExecStartPost=/bin/sh -c \"until [ -S /dev/tpmrm0 ]; do sleep 0.1; done\"' [Install] WantedBy=multi-user.target")
    raishan.succeed("systemctl daemon-reload && systemctl enable --quiet --now tpm")
    deploy("joining", [raishan])
    wait_until(lambda: error(raishan, "cert-node") == "join", lambda: f"it waits: {needs(raishan)}")
    print(f"       {needs(raishan)['cert-node']['error']['message']}")

with subtest("with a token it becomes a request, which outlives the provider's death and its own reboot"):
    out = florctl("join token create --host raishan")
    token = next(line for line in out.splitlines() if line.startswith("florete-join-v1."))
    raishan.succeed(f"systemd-run --quiet --unit=joining sh -c 'echo {token} | flor join -'")
    wait_until(lambda: "raishan" in joins(), lambda: f"it requests: {florctl('join list')}")
    drhorrible.succeed("systemctl kill --signal=KILL florete-provider-config")
    raishan.crash()
    raishan.start()
    wait_until(lambda: joins().get("raishan", {}).get("state") == "pending", lambda: f"it is pending: {florctl('join list')}")
    wait_until(lambda: error(raishan, "cert-node") == "join", lambda: f"it waits: {needs(raishan)}")
    assert token not in florctl("join token list --json")
    assert "waits for approval as this host: florctl join approve raishan" in florctl("status"), florctl("status")
    doctor = raishan.execute("flor doctor")[1]
    assert doctor.count("florctl join approve raishan") == 1 and "florctl join token create" not in doctor, doctor

with subtest("an operator approves it by its fingerprint: it enrols by itself, and serves and reaches what it may"):
    device = joins()["raishan"]["fingerprint"]
    out = florctl(f"join approve raishan {KEY} --device SHA256:another")
    assert "nothing is approved" in out, out
    out = florctl(f"join approve raishan {KEY} --device {device}")
    assert f"device {device} is approved as raishan" in out, out
    raishan.succeed("flor join")  # which has it enrol at once
    began = time.time()
    wait_fulfilled([raishan])
    wait_started(raishan, "florete-agent.service")
    wait_reaches(raishan, "outline")
    print(f"       at work {time.time() - began:.1f} s later")
    assert raishan.succeed(f"stat --format='%a %U' {STATE}/join/device.tpm") == "600 root\n"
    assert "device key: in the TPM" in raishan.succeed("flor status")
    assert joins()["raishan"]["facts"]["deviceKey"] == "tpm" and "  tpm  " in florctl("join list"), florctl("join list")
    wait_until(lambda: ", key in TPM" in florctl("status"), lambda: f"its operator sees that: {florctl('status')}")
    assert raishan.execute(f"grep --recursive --files-with-matches {token} {STATE} /run")[0] != 0, "the token is still there"

with subtest("the token is good for no other machine"):
    laptop.succeed(f"mkdir -p /root/thief/documents && cp -r {STATE}/documents/. /root/thief/documents/")
    code, out = laptop.execute(f"flor join --state /root/thief {token} 2>&1")
    assert code == 1 and "declares its SSH host key" in out, (code, out)
    assert "0 of 1" in florctl("join token list")

with subtest("its manifest is applied again: it keeps what it is and runs"):
    before = serial(raishan)
    deploy("joining", [raishan])
    raishan.succeed("systemctl restart florete-activate")
    wait_fulfilled([raishan])
    assert serial(raishan) == before and joins()["raishan"]["state"] == "approved"
    wait_reaches(raishan, "outline")

with subtest("an identity file brings it certificates of keys that it makes, and starts its activation"):
    (operator.home / "raishan.request").write_text(raishan.succeed("flor identity create 2>/dev/null"))
    issue = f"identity issue --request ~/raishan.request --device {device} --dir {PREPARED}/operator --out ~/raishan.age {SIGNS}"
    out = florctl(issue)
    assert "such as a key in a TPM, which cannot decrypt files: pass --passphrase" in out, out
    (operator.home / "passphrase").write_text("correct horse battery")
    (operator.home / "passphrase").chmod(0o600)
    out = florctl(issue + " --passphrase-file ~/passphrase")
    assert "identity file of raishan: flor identity install there" in out, out
    raishan.copy_from_host(str(operator.home / "raishan.age"), "/root/raishan.age")
    raishan.copy_from_host(str(operator.home / "passphrase"), "/root/passphrase")
    raishan.succeed("systemctl stop florete-activate")
    out = raishan.succeed("flor identity install --passphrase-file /root/passphrase /root/raishan.age")
    assert "raishan is delivered" in out, out
    assert "enrolment" in raishan.succeed(f"openssl x509 -noout -issuer -in {STATE}/needs/cert-node/current/svid.pem")
    assert raishan.succeed(f"ls {STATE}/join") == "admission.json\ndevice.tpm\n"
    wait_reaches(raishan, "outline")
    before = serial(raishan)
    assert "id-issue" in florctl("audit")

with subtest("suspended it reaches and obtains nothing, and keeps what it has"):
    began = time.time()
    out = florctl(f"suspend raishan {SIGNS} --wait 10s")
    assert "revocation list 1 is offered" in out, out
    wait_until(lambda: not reaches(raishan, "outline"), lambda: "it is refused")
    print(f"       refused {time.time() - began:.1f} s after the command began")
    raishan.succeed("flor refetch cert-node")
    wait_until(lambda: error(raishan, "cert-node") == "revoked", lambda: f"it is refused: {needs(raishan)}")
    assert "suspended" in needs(raishan)["cert-node"]["error"]["message"] and "suspended" in florctl("revocations")
    assert serial(raishan) == before

with subtest("resumed it goes on, with the certificate that it had"):
    out = florctl(f"unsuspend raishan {SIGNS} --wait 10s")
    assert "revocation list 2 is offered" in out, out
    # By itself it requests that every half minute, and its next certificate, too.
    raishan.succeed("flor refetch config-documents")
    wait_reaches(raishan, "outline")
    assert serial(raishan) == before
    raishan.succeed("flor refetch cert-node")
    wait_fulfilled([raishan])
    wait_reaches(raishan, "outline")

with subtest("nobody else noticed"):
    result = traffic.end()
    assert not result["failed"], result
    print(f"       {result['requests']} requests beside it, none failed")
