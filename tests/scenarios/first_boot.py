"""Five hosts boot with systemd and reach each other."""
start_all()
with subtest("every host boots"):
    for m in machines:
        m.wait_for_unit("multi-user.target")
with subtest("every host reaches every other"):
    for m in machines:
        for n in range(1, 6):
            m.succeed(f"ping -c 1 -W 2 10.77.0.{n}")
