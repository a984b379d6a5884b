"""Hosts fetch systems from the binary cache with stock Nix: each its own, signed by the flake's key."""
# operator: docs/how-to/use-the-binary-cache.md

bring_up("cached")
PREPARED = operator.florete.removeprefix("path:").removesuffix("/florete")
KEY = f"{PREPARED}/operator/signing.key"
COPY = "nix copy --to 'http://florete-cache.drhorrible.demo.flor.rete?secret-key=signing.key' $system"
CACHE = "http://florete-cache.drhorrible.demo.flor.rete"
SYSTEM = '''builtins.toFile "system" "of raishan, on ${builtins.toFile "library" "of all"}"'''


def at(host, command):
    """What root of a host types, and how it ends. Hosts have no Nix: this machine lends its own."""
    (operator.home / "hosts").write_text(host.succeed("cat /etc/hosts"))
    nix = "export XDG_CACHE_HOME=$(mktemp -d) NIX_CONFIG=\"$NIX_CONFIG\ndownload-attempts = 1\""
    return operator.succeed(f"mount --bind ~/hosts /etc/hosts\n{nix}\n({command}) 2>&1 && echo exit 0 || echo exit $?", at=host.name)


def fetch(host, into):
    """Copies the system into an empty store, by signed paths alone."""
    return at(host, f"nix copy --from {CACHE} --to 'local?root='$(mktemp -d ~/{into}-XXXX) --option trusted-public-keys \"$(nix key convert-secret-to-public < {KEY})\" {system}")


system = operator.succeed(f"nix eval --raw --impure --expr '{SYSTEM}'").strip()
wait_until(lambda: at(mgmt01, f"curl --silent --fail {CACHE}/nix-cache-info").endswith("exit 0\n"), lambda: "the cache is served")

with subtest("who has no role to add paths is refused, and learns which"):
    out = at(raishan, f"cd {PREPARED}/operator; system={system}; {COPY}")
    assert "node/raishan may read here, want write: give it a role with group nix-cache-write" in out and not out.endswith("exit 0\n"), out

with subtest("what the flake's key has not signed is refused"):
    out = at(mgmt01, f"nix copy --to {CACHE} {system}")
    assert "want a signature by one of trust.signingKeys" in out and not out.endswith("exit 0\n"), out

with subtest("an operator copies a closure, and a document names it"):
    out = at(mgmt01, f"cd {PREPARED}/operator; system={system}; {COPY}")
    assert out.endswith("exit 0\n"), out
    assert not fetch(raishan, "raishan").endswith("exit 0\n")
    out = at(mgmt01, f"florctl publish git+file://{PREPARED}/cluster --cluster cached-named --key {KEY} --signed ~/signed --closure raishan={system}")
    assert out.endswith("exit 0\n"), out

with subtest("the host that it names fetches it, and no other"):
    out = fetch(raishan, "raishan")
    assert out.endswith("exit 0\n"), out
    out = operator.succeed(f"cat ~/raishan-*{system}")
    assert out.startswith("of raishan, on /nix/store/"), out
    out = fetch(ursula, "ursula")
    assert not out.endswith("exit 0\n"), out

with subtest("a provider that starts again has it all"):
    drhorrible.succeed("systemctl restart florete-provider-config.service")
    wait_until(lambda: fetch(raishan, "again").endswith("exit 0\n"), lambda: "the cache is served again")

with subtest("who added what is in the audit log"):
    rows = [json.loads(line) for line in drhorrible.succeed("flor-provider audit --json --kind cache").splitlines()]
    assert [r["message"] for r in rows if r["decision"] == "granted"][-1] == f"added {system}", rows
    assert all(r["caller"] == "spiffe://demo.flor/node/mgmt01" for r in rows if r["decision"] == "granted"), rows
