"""The machine of an operator, on the hosts' network: this one, with a home of its own,
our commands, and SSH to the hosts."""

import os
import re
import shutil
from pathlib import Path

from .command import run
from .host import RequestedAssertionFailed
from .network import SUBNET, Network

HEADING, BLOCK = re.compile(r"^#+ (.*)$"), re.compile(r"^```(\w*)$")
NUMBER = 254  # of its address


class Operator:
    """dir is for it alone; florete is the flake that clusters have as an input, programs
    the directory of those that scenarios bring, signed the record of what the signing key
    signed, which it has a copy of in ~/signed: several operators have that key at once."""

    def __init__(self, dir: Path, bin: Path, florete: Path, programs: Path, signed: Path, network: Network, hosts: dict[str, int]) -> None:
        self.network, self.florete, self.programs = network, f"path:{florete}", str(programs)
        self.home, commands, config = dir / "home", dir / "bin", dir / "ssh"
        self.cwd = self.home
        for d in (self.home, commands):
            d.mkdir(parents=True)
        shutil.copy(signed, self.home / "signed")
        run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", dir / "key")
        self.public_key = (dir / "key.pub").read_text().strip()
        names = "".join(f"Host {name}\n  HostName {SUBNET}.{number}\n" for name, number in hosts.items())
        config.write_text(f"{names}Host *\n  IdentityFile {dir / 'key'}\n  StrictHostKeyChecking no\n  UserKnownHostsFile /dev/null\n  LogLevel ERROR\n")
        for program in ("ssh", "scp"):
            command = commands / program
            command.write_text(f'#!/bin/sh\nexec /usr/bin/{program} -F {config} "$@"\n')
            command.chmod(0o755)
        who = {"NAME": "operator", "EMAIL": "operator@demo.flor"}
        self.env = {k: v for k, v in os.environ.items() if not k.startswith("SSH_")} | {
            "HOME": str(self.home), "PATH": f"{commands}:{bin}:{os.environ['PATH']}",
            "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null",
        } | {f"GIT_{role}_{k}": v for role in ("AUTHOR", "COMMITTER") for k, v in who.items()}
        network.join(NUMBER)

    def succeed(self, text: str, at: str = "") -> str:
        """Runs a piece of shell, where the last one ended; what it printed. At a host it
        has that one's network and names."""
        script = f"set -euo pipefail; cd {self.cwd}; trap 'pwd > {self.home}/.cwd' EXIT\n{text}"
        try:
            out = run("ip", "netns", "exec", f"{self.network.prefix}-{at}" if at else self.network.switch, "bash", "-c", script, env=self.env)
        except Exception as e:
            raise RequestedAssertionFailed(f"operator: {e}") from e
        self.cwd = Path((self.home / ".cwd").read_text().strip())
        return out


def blocks(page: Path) -> dict[str, list[str]]:
    """The pieces of shell on a page, by the heading that they are below."""
    found: dict[str, list[str]] = {}
    heading, kind, piece = "", None, []
    for line in page.read_text().splitlines():
        if kind is not None:
            if line == "```":
                if kind == "sh":
                    found.setdefault(heading, []).append("\n".join(piece) + "\n")
                kind = None
            else:
                piece.append(line)
        elif m := BLOCK.match(line):
            kind, piece = m[1], []
        elif m := HEADING.match(line):
            heading = m[1]
    return found
