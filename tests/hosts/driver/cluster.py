"""What an operator prepares before the hosts exist: keys, root CA, the documents
and units of every revision of cluster/, signed documents for the network."""

import fcntl
import json
import os
import shutil
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from .command import run
from .host import Host
from .network import SUBNET

# The first has the address 10.77.0.1, and so on.
HOSTS = ["drhorrible", "raishan", "ursula", "mgmt01", "laptop"]
DOMAIN = "demo.flor"
# Where a host finds its own part of each revision; only the provider host holds
# what is published, only the operator's the root key.
REVISIONS, PUBLISHED, OPERATOR = "usr/share/revisions", "srv/published", "srv/operator"
# And where some find bundles, of revisions or of clusters of cluster/blue.
BUNDLES = "root/bundles"
BLUE = ["blue", "undeclared"]


class Cluster:
    """dir holds what is prepared; here is tests/hosts; bin holds our commands."""

    def __init__(self, here: Path, bin: Path, dir: Path) -> None:
        self.here, self.bin, self.dir = here, bin, dir
        self.flake, self.operator, self.keys = dir / "cluster", dir / "operator", dir / "keys"

    def prepare(self) -> None:
        began = time.monotonic()
        repo = self.here.parent.parent
        (self.dir / "florete").mkdir(parents=True)
        for part in ("flake.nix", "flake.lock", "nix"):
            run("cp", "--recursive", "--parents", part, self.dir / "florete", cwd=repo)
        shutil.copytree(self.here / "cluster", self.flake)
        for made in (self.operator, self.dir / "published"):
            made.mkdir()
        for root, name in ((self.operator, "ca.crt"), (self.operator / "next", "next.crt")):
            self._florctl("ca", "init", "--trust-domain", DOMAIN, "--out", root)
            shutil.copy(root / "ca.crt", self.flake / name)
        self._florctl("ca", "init", "--trust-domain", "blue.flor", "--out", self.operator / "blue")
        shutil.copy(self.operator / "blue/ca.crt", self.flake / "blue")
        (self.flake / "facts.json").write_text(json.dumps(self._facts()))
        self._commit()
        revisions = self._revisions()
        with ThreadPoolExecutor(os.cpu_count()) as at_once:  # Nix evaluates with one processor
            list(at_once.map(self._publish, revisions))
        print(f"hosts: prepared the cluster ({time.monotonic() - began:.0f} s)", flush=True)

    def furnish(self, h: Host) -> None:
        """Puts on a host that was never started what its installation would."""
        shutil.copytree(self.here / "root", h.upper, symlinks=True, dirs_exist_ok=True)
        h.layers.append(self.dir / "revisions" / h.name)  # thousands of files, if copied
        ssh = h.upper / "etc/ssh"
        ssh.mkdir()
        for key, at in ((h.name, "ssh_host_ed25519_key"), ("next", "next")):
            shutil.copy(self.keys / key, ssh / at)
            shutil.copy(self.keys / f"{key}.pub", ssh / f"{at}.pub")
        if h.name == HOSTS[0]:
            shutil.copytree(self.dir / "published", h.upper / PUBLISHED)
            users = h.upper / "var/lib/florete-provider/oidc/users.hujson"
            users.parent.mkdir(parents=True)
            users.write_text("[]")
            users.chmod(0o600)
        if h.name == "mgmt01":
            shutil.copytree(self.operator, h.upper / OPERATOR)
        h.binds[self.bin] = "/usr/local/bin"
        h.binds[self.here.parent / "scenarios/programs"] = "/usr/local/lib/scenarios"

    def pack(self, h: Host, file: str) -> None:
        """Puts a bundle of a host, "base.deb", where its operator would unpack it. Each is packed
        once for all scenarios of a run, which takes some seconds."""
        cluster, _, format = file.partition(".")
        packed, out = self.dir / "bundles" / h.name / file, h.upper / BUNDLES / file
        for at in (packed, out):
            at.parent.mkdir(parents=True, exist_ok=True)
        with open(f"{packed}.lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not packed.exists():
                new, ref = packed.with_name(f"new-{file}"), self._ref("?dir=blue" if cluster in BLUE else "")
                self._florctl("bundle", ref, "--cluster", cluster, "--host", h.name, "--format", format, "--out", new)
                new.rename(packed)
        shutil.copy(packed, out)

    def _facts(self) -> dict[str, object]:
        self.keys.mkdir()
        secret = run("nix", "key", "generate-secret", "--key-name", "demo-1")
        (self.operator / "signing.key").write_text(secret)
        (self.operator / "signing.key").chmod(0o600)
        return {
            "addresses": {name: f"{SUBNET}.{i}" for i, name in enumerate(HOSTS, 1)},
            "keys": [run("nix", "key", "convert-secret-to-public", stdin=secret).strip()],
            "sshHostKeys": {name: self._ssh_key(name) for name in HOSTS},
            "nextHostKey": self._ssh_key("next"),
        }

    def _ssh_key(self, name: str) -> str:
        run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", self.keys / name)
        return (self.keys / f"{name}.pub").read_text().strip()

    def _commit(self) -> None:
        env = os.environ | {"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null"}
        git = ["git", "-C", self.flake, "-c", "user.name=operator", "-c", f"user.email=operator@{DOMAIN}"]
        run(*git, "init", "--quiet", "--initial-branch=main", env=env)
        run(*git, "add", "--all", env=env)
        for within in ("", "?dir=blue"):
            run("nix", "flake", "lock", self._ref(within), "--override-input", "florete", f"path:{self.dir / 'florete'}")
        run(*git, "add", "--all", env=env)
        run(*git, "commit", "--quiet", "--message", "the cluster", env=env)

    def _ref(self, within: str = "") -> str:
        return f"git+file://{self.flake}{within}"

    def _florctl(self, *args: str | Path) -> str:
        return run(self.bin / "florctl", *args)

    def _revisions(self) -> list[str]:
        """Every host's part of every revision, in one evaluation: florctl, which looks at one cluster
        and one host at a time, would be hundreds. Their names."""
        parts = "clusters: builtins.mapAttrs (_: c: { inherit (c) documents units sysusers sysctl; }) clusters"
        all = json.loads(run("nix", "eval", "--json", f"{self._ref()}#florete", "--apply", parts))
        for revision, made in all.items():
            for host, documents in made["documents"].items():
                at = self.dir / "revisions" / host / REVISIONS / revision
                files = {f"units/{name}": text for name, text in made["units"][host].items()}
                files |= {"units/florete.sysusers": made["sysusers"][host], "units/florete.sysctl": made["sysctl"]}
                for kind, document in documents.items():
                    files |= {f"documents/{kind}.json": document["body"], f"documents/{kind}.envelope.json": document["envelope"]}
                for name, text in files.items():
                    (at / name).parent.mkdir(parents=True, exist_ok=True)
                    (at / name).write_text(text)
        return list(all)

    def _publish(self, revision: str) -> None:
        """What the config provider serves of a revision."""
        published = self.dir / "published" / f"{revision}.json"
        self._florctl("publish", self._ref(), "--cluster", revision, "--key", self.operator / "signing.key", "--out", published, "--replace-roots")
