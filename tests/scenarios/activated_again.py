"""Activations in a row do nothing after the first."""
# common cluster: base

bring_up("base")


def traces():
    """All that an activation could have done on ursula and at the provider."""
    return {
        "files": ursula.succeed(f"cd {STATE} && find . -type l -printf '%p %l %i %T@\\n' -o -path '*/gen-*' -type f -printf '%p %i %T@\\n' | sort"),
        "states": ursula.succeed(f"sha256sum {STATE}/needs/*/state.json"),
        "outline": ursula.get_unit_property("outline.service", "MainPID"),
        "agent": ursula.get_unit_property("florete-agent.service", "MainPID"),
        "decisions": decisions(),
    }


with subtest("ten starts of the unit: no request, no file touched, no unit told"):
    before = traces()
    ursula.succeed("for i in $(seq 10); do systemctl restart florete-activate.service; done")
    assert ursula.get_unit_property("florete-activate.service", "ActiveState") == "active"
    after = traces()
    assert after == before, f"{before}\n{after}"

with subtest("one pass by hand, while the unit is stopped, finds everything done"):
    ursula.succeed("systemctl stop florete-activate.service")
    print("       " + ursula.succeed("flor activate --once --closure /etc/florete/documents --owner florete 2>&1 | grep summary").strip())
    after = traces()
    assert after == before, f"{before}\n{after}"
    ursula.succeed("systemctl start florete-activate.service")
