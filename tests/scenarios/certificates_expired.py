"""The provider is away longer than certificates live: every door closes, and opens by itself when it is back."""
# common cluster: brief

bring_up("brief")
with subtest("certificates that ran out are believed by nobody"):
    drhorrible.block()
    wait_until(lambda: not reaches(mgmt01, "wiki"), lambda: "wiki is refused")
    for host in (ursula, mgmt01):
        host.wait_until_fails(f"openssl x509 -noout -checkend 0 -in {STATE}/needs/cert-node/current/svid.pem")
    mgmt01.fail("curl --silent --fail --max-time 5 http://outline.demo.flor.rete/")

with subtest("hosts whose certificate ran out prove themselves again"):
    drhorrible.unblock()
    wait_fulfilled()
    wait_reaches(mgmt01, "wiki")
    wait_reaches(raishan, "outline")
