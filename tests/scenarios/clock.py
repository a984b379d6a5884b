"""A host whose clock jumps is told so, changes nothing, and recovers when the clock does."""
# needs: clock

bring_up("base")
before = serial(ursula, "cert-node")


def jump(host, by):
    host.succeed(f"date --set=@$(( $(date +%s) + {by} ))")


with subtest("three days ahead: to itself its certificate has run out, and the provider says that it is the clock"):
    jump(ursula, 3 * 86400)
    ursula.succeed("systemctl restart florete-activate.service")
    wait_until(lambda: not reaches(ursula, "metrics"), lambda: "ursula is refused")
    wait_until(lambda: needs(ursula)["cert-node"].get("error"), lambda: f"ursula is told: {needs(ursula)}")
    error = needs(ursula)["cert-node"]["error"]
    assert error["kind"] == "transient", error
    print(f"       {error['message']}")

with subtest("the clock is right again: nothing was lost, no wait is longer than it was meant to be"):
    jump(ursula, -3 * 86400)
    wait_fulfilled([ursula])
    wait_reaches(ursula, "metrics")

with subtest("a year back: certificates are not yet valid, and valid again afterwards"):
    jump(ursula, -365 * 86400)
    wait_until(lambda: not reaches(ursula, "metrics"), lambda: "ursula is refused")
    jump(ursula, 365 * 86400)
    wait_fulfilled([ursula])
    wait_reaches(ursula, "metrics")
