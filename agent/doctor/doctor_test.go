package doctor_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/big"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/florete/florete/agent/doctor"
	"github.com/florete/florete/agent/status"
	"github.com/florete/florete/agent/units"
	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostdir"
	"github.com/florete/florete/internal/trust"
	"github.com/florete/florete/internal/unixtime"
	"github.com/florete/florete/nix/operator/revocation"
	"github.com/florete/florete/tests/kit"
	"github.com/florete/florete/tests/kit/agenttest"
)

func TestDoctor(t *testing.T) {
	for name, c := range map[string]struct {
		hurt       func(p *patient)
		begin, fix string // beginning of the finding, empty for no finding
		run        bool   // whether the fix can be run in the test
	}{
		"well": {hurt: func(p *patient) {}},
		"no documents": {
			hurt:  func(p *patient) { p.Layout = hostdir.Layout(t.TempDir()) },
			begin: "documents: no manifest accepted yet in ", fix: "systemctl restart florete-activate.service",
		},
		"documents changed": {
			hurt: func(p *patient) {
				p.write(filepath.Join(hostdir.Current(p.Layout.Documents()), "manifest.json"), "{}", 0o644)
			},
			begin: "documents: ", fix: "systemctl restart florete-activate.service",
		},
		"an older generation": {
			hurt: func(p *patient) {
				p.sh("mkdir -p " + p.Layout.DocumentsCopy() + "/gen-1 && cp " + hostdir.Current(p.Layout.Documents()) + "/* " + p.Layout.DocumentsCopy() + "/gen-1/ && ln -s gen-1 " + hostdir.Current(p.Layout.DocumentsCopy()))
				p.sh(`sed -i 's/"serial":[0-9]*/"serial":4000000000/' ` + hostdir.Current(p.Layout.DocumentsCopy()) + "/" + document.EnvelopeFile(document.DocManifest))
			},
			begin: "documents: the manifest in force has serial ", fix: "deploy this host's newest documents",
		},
		"few descriptors": {
			hurt: func(p *patient) {
				p.units["florete-agent.service"] = units.Unit{Load: "loaded", Active: "active", Descriptors: 20}
			},
			begin: "units: florete-agent.service may open only 20 files", fix: "take LimitNOFILE out of what overrides the unit (systemctl cat florete-agent.service), then: systemctl daemon-reload && systemctl restart florete-agent.service",
		},
		"stale documents": {
			hurt: func(p *patient) {
				p.Laptop.StaleAfter = 3600
				p.AcceptLaptop()
				p.sh("mkdir " + p.Layout.Need("config-documents"))
				p.state("config-documents", fmt.Sprintf(`{"state":"fulfilled","fulfilled":%d}`, time.Now().Add(-2*time.Hour).Unix()))
				p.sh("touch --date=@" + fmt.Sprint(time.Now().Add(-3*time.Hour).Unix()) + " " + hostdir.Current(p.Layout.Documents()) + "/")
			},
			begin: "documents: no provider has answered about this host's documents for 2h0m", fix: "see why need config-documents is not fulfilled, below, and on forge: flor doctor; or deploy this host's documents",
		},
		"revocation list overdue": {
			hurt: func(p *patient) {
				kit.WriteRevocations(p.Layout.Revocations(), kit.RevocationsSigned(time.Now().Add(-revocation.Lifetime-time.Hour-time.Minute/2)))
			},
			begin: "documents: a newer revocation list than 1 has been due for 1h0m",
			fix:   "where the signing key is: florctl revoke --renew --key FILE; then see why this host has no newer one: flor doctor on its providers of documents",
		},
		"revocation list about to end": {
			hurt: func(p *patient) {
				kit.WriteRevocations(p.Layout.Revocations(), kit.RevocationsSigned(time.Now().Add(-revocation.Lifetime+48*time.Hour+time.Minute/2)))
			},
			begin: "documents: a newer revocation list than 1 is due in 48h0m", fix: "where the signing key is: florctl publish, or florctl revoke --renew --key FILE",
		},
		"withheld documents": {
			hurt: func(p *patient) {
				p.Laptop.StaleAfter = 3600
				p.AcceptLaptop()
				named := trust.NamedDocuments{Serial: 4e9, Due: unixtime.Unix(1e9)}
				p.sh("mkdir " + p.Layout.Need("config-documents"))
				p.state("config-documents", fmt.Sprintf(`{"state":"fulfilled","fulfilled":%d}`, time.Now().Unix()))
				kit.WriteRevocations(p.Layout.Revocations(), kit.Naming(3, kit.SigningKey("demo-1"), named))
			},
			begin: "documents: its manifest has serial ",
			fix: "the config provider on forge serves this host older documents: ask the operator, who runs florctl status and florctl versions, " +
				"and looks on that host for a state that was restored, or for somebody who broke in; then florctl publish again",
		},
		"audit log of a provider is another": {
			hurt: func(p *patient) {
				p.write(p.Layout.WitnessedFile(), `[{"provider":"forge","kind":"cert","key":"","checkpoint":"","size":5,"seen":1,"fault":"2 rows are gone","since":1784011430}]`, 0o644)
			},
			begin: "documents: audit log of kind cert on forge, since 2026-07-14T06:43:50Z: 2 rows are gone",
			fix:   "find out who changed it: on forge: flor-provider audit --verify; once that is known, on each host that reports it: flor witness accept forge cert --reason …",
		},
		"what was accepted of an audit log": {
			hurt: func(p *patient) {
				p.write(p.Layout.WitnessedFile(), `[{"provider":"forge","kind":"cert","key":"","checkpoint":"","size":5,"seen":1,"fault":"2 rows are gone","since":1784011430}]`, 0o644)
				p.write(p.Layout.AcceptedFile(), `[{"provider":"forge","kind":"cert","fault":"2 rows are gone","since":1784011430,"at":1784011431,"by":"root","reason":"restored"}]`, 0o644)
			},
		},
		"CRL overdue": {
			hurt: func(p *patient) {
				l, err := kit.NewCA().Issuing.SignCRL(nil, big.NewInt(1), time.Hour, time.Now().Add(-2*time.Hour))
				if err != nil {
					t.Fatal(err)
				}
				p.write(p.Layout.CRL(), string(trust.EncodeCRLs(l)), 0o644)
			},
			begin: "documents: ", fix: "",
		},
		"pending change": {
			hurt: func(p *patient) {
				p.write(p.Layout.ChangeFile(), `{"id":"k3f9","documents":[{"kind":"manifest","serial":7,"digest":"","rev":""}],"deadline":1784011430}`, 0o644)
			},
			begin: "documents: change k3f9, manifest 7 is pending: it goes back at 2026-07-14T06:43:50Z", fix: "confirm it from a new login, flor sync --confirm k3f9, or wait until it has gone back",
		},
		"undone change": {
			hurt: func(p *patient) {
				p.write(p.Layout.UndoneFile(), `{"id":"k3f9","documents":[{"kind":"manifest","serial":4000000000,"digest":"","rev":""}],"deadline":1784011430}`, 0o644)
			},
			begin: "documents: change k3f9, manifest 4000000000 went back at 2026-07-14T06:43:50Z", fix: "publish documents that are right: they are newer",
		},
		"clock behind": {
			hurt:  func(p *patient) { p.date = time.Hour + 2*time.Second },
			begin: "clock: this host's clock is 1h0m", fix: "timedatectl set-ntp true",
		},
		"clock ahead": {
			hurt:  func(p *patient) { p.date = -time.Minute - 2*time.Second },
			begin: "clock: this host's clock is 1m", fix: "timedatectl set-ntp true",
		},
		"provider down": {
			hurt:  func(p *patient) { p.provider.Close() },
			begin: "providers: cert provider forge at 127.0.0.1:", fix: "on forge: flor doctor",
		},
		"provider another": {
			hurt:  func(p *patient) { p.present("service/other/florete-provider-cert") },
			begin: "providers: cert provider forge at 127.0.0.1:", fix: "on forge: flor doctor",
		},
		"stale hosts": {
			hurt: func(p *patient) {
				p.write(p.Hosts, "127.9.9.9 other outline.demo.flor.rete\n", 0o644)
			},
			begin: "names: ", fix: "", run: true,
		},
		"names missing": {
			hurt:  func(p *patient) { p.write(p.Hosts, "127.0.0.1 localhost\n", 0o644) },
			begin: "names: ", fix: "systemctl restart florete-hosts-file.service",
		},
		"names that nobody keeps": {
			hurt: func(p *patient) {
				p.write(p.Hosts, "127.0.0.1 localhost\n", 0o644)
				p.units["florete-hosts-file.service"] = units.Unit{Load: "not-found", Active: "inactive"}
			},
		},
		"need denied": {
			hurt: func(p *patient) {
				p.state("cert-user-alice", `{"state":"blocked"}`)
				p.state("cert-user-bob", `{"state":"denied","error":{"kind":"denied","code":"not-granted","message":"no grant"}}`)
			},
			begin: "needs: need cert-user-bob is denied: denied (not-granted): no grant", fix: "deploy forge and this host from one revision of the flake",
		},
		"need new": {
			hurt:  func(p *patient) { p.sh("rm " + p.Layout.NeedStateFile("cert-node")) },
			begin: "needs: need cert-node was never requested", fix: "systemctl restart florete-activate.service",
		},
		"SVID gone": {
			hurt:  func(p *patient) { p.sh("rm -r " + p.Layout.Need("cert-user-bob") + "/current") },
			begin: "identity: the SVID of user/bob is gone from ", fix: "systemctl restart florete-activate.service",
		},
		"SVID expired": {
			hurt:  func(p *patient) { p.Laptop.Deliver(p.CA, agenttest.Bob, -time.Minute) },
			begin: "identity: the SVID of user/bob expired 1m", fix: "systemctl restart florete-activate.service",
		},
		"issuing certificate of which half is over": {
			hurt: func(p *patient) {
				p.CA.Renew(20 * 24 * time.Hour) // of a lifetime of 50 days
				p.Laptop.Deliver(p.CA, agenttest.Alice, time.Minute)
				p.Laptop.Deliver(p.CA, agenttest.Bob, time.Minute)
			},
			begin: `identity: the issuing certificate "demo.flor issuing" ends on `, fix: "where the root's key is, run: ssh forge cat /var/lib/florete-provider/cert/issuing.csr | florctl ca sign | ssh forge flor-provider install-cert",
		},
		"host key another": {
			hurt:  func(p *patient) { p.write(p.HostKey+".pub", "ssh-ed25519 BBBB", 0o644) },
			begin: "identity: SSH host key ", fix: `in the flake: hosts.laptop.sshHostKey = "ssh-ed25519 BBBB"; then deploy its providers and this host`,
		},
		"host key gone": {
			hurt:  func(p *patient) { p.sh("rm " + p.HostKey + "*") },
			begin: "identity: no SSH host key ", fix: "restore it from a backup of this host; a new one, ssh-keygen -A, must go into the flake: hosts.laptop.sshHostKey",
		},
		"not published": {
			hurt: func(p *patient) {
				p.sh("rm -r " + p.Ursula.Layout.Need("cert-service-outline"))
				p.stop["ursula"]()
				p.start(p.Ursula)
			},
			begin: "forwarders: forwarder: spiffe://demo.flor/service/outline at " + ursula + ":", fix: "on " + ursula + ": flor doctor",
		},
		"agent down": {
			hurt:  func(p *patient) { p.stop["laptop"]() },
			begin: "agent: agent at ", fix: "systemctl restart florete-agent.service",
		},
		"unit failed": {
			hurt: func(p *patient) {
				p.units["florete-agent.service"] = units.Unit{Load: "loaded", Active: "failed"}
			},
			begin: "units: florete-agent.service is failed", fix: "systemctl reset-failed florete-agent.service; systemctl restart florete-agent.service",
		},
		"nobody waits for a need": { // for example when there are too many inotify instances
			hurt: func(p *patient) {
				p.units["florete-need-cert-user-bob.path"] = units.Unit{Load: "loaded", Active: "failed"}
				p.units["florete-need-cert-user-alice.path"] = units.Unit{Load: "not-found", Active: "inactive"}
			},
			begin: "units: florete-need-cert-user-bob.path is failed", fix: "systemctl reset-failed florete-need-cert-user-bob.path; systemctl restart florete-need-cert-user-bob.path",
		},
		"unit stopped": {
			hurt: func(p *patient) {
				p.units["florete-activate.service"] = units.Unit{Load: "loaded", Active: "inactive", Sub: "dead"}
			},
			begin: "units: florete-activate.service is inactive (dead)", fix: "systemctl enable --now florete-activate.service",
		},
		"unit masked": {
			hurt: func(p *patient) {
				p.units["florete-activate.service"] = units.Unit{Load: "masked", Active: "inactive"}
			},
			begin: "units: florete-activate.service is masked", fix: "systemctl unmask florete-activate.service && systemctl start florete-activate.service",
		},
		"unit unknown": {
			hurt: func(p *patient) {
				p.units["florete-activate.service"] = units.Unit{Load: "not-found", Active: "inactive"}
			},
			begin: "units: florete-activate.service is not installed", fix: "run install.sh of this host's bundle (florctl bundle)",
		},
		"provider host": {
			hurt: func(p *patient) {
				p.Laptop.Provide("oidc")
				p.units["florete-provider-oidc.service"] = units.Unit{Load: "loaded", Active: "failed"}
			},
			begin: "units: florete-provider-oidc.service is failed", fix: "systemctl reset-failed florete-provider-oidc.service; systemctl restart florete-provider-oidc.service",
		},
		"a member of the store that does not run": {
			hurt: func(p *patient) {
				p.Laptop.Provide("oidc", member)
				p.sh("mkdir -p " + filepath.Join(p.Etc, "store"))
				p.write(filepath.Join(p.Etc, "store", "member.key"), "secret", 0o600)
				p.units["florete-store.service"] = units.Unit{Load: "loaded", Active: "failed"}
			},
			begin: "units: florete-store.service is failed", fix: "systemctl reset-failed florete-store.service; systemctl restart florete-store.service",
		},
		"a member of the store without certificates": {
			hurt: func(p *patient) {
				p.Laptop.Provide("oidc", member)
				p.units["florete-store.service"] = units.Unit{Load: "loaded", Active: "inactive"}
			},
			begin: "units: florete-store.service does not run: there is no ", fix: "on the operator's machine, run florctl store issue for this host, and put what it writes there",
		},
		"a certificate of the store that ends": {
			hurt: func(p *patient) {
				now := time.Now()
				chain, _ := kit.EncodeSVID(kit.NewCA().IssueAt(kit.ID("node/laptop"), now.Add(-80*24*time.Hour), now.Add(5*24*time.Hour)))
				p.sh("mkdir -p " + filepath.Join(p.Etc, "store"))
				p.write(filepath.Join(p.Etc, "store", "client.crt"), string(chain), 0o644)
			},
			begin: "identity: the certificate of the shared store in ", fix: "on the operator's machine, run florctl store issue for this host, and put what it writes there",
		},
		"a provider without settings that was stopped": {
			hurt: func(p *patient) {
				p.Laptop.Provide("oidc")
				p.sh("rm " + filepath.Join(p.Etc, "provider.hujson"))
				p.units["florete-provider-oidc.service"] = units.Unit{Load: "loaded", Active: "inactive"}
			},
			begin: "units: florete-provider-oidc.service is inactive", fix: "systemctl enable --now florete-provider-oidc.service",
		},
		"a host that has not requested to join": {
			hurt: func(p *patient) {
				p.joins()
				p.state("cert-node", `{"state":"waiting","error":{"kind":"transient","code":"join","message":"laptop has no SSH host key in the flake, and no device that was admitted: florctl join token create --host laptop, then flor join - here"}}`)
			},
			begin: "identity: this host's device is not admitted", fix: "florctl join token create --host laptop, then flor join - here",
		},
		"a host whose join waits for approval": {
			hurt: func(p *patient) {
				p.joins("device.key", "request.json")
				p.state("cert-node", `{"state":"waiting","error":{"kind":"transient","code":"join","message":"device SHA256:abc waits for an operator: florctl join approve laptop"}}`)
			},
			begin: "identity: this host has requested to join, and waits for an operator's approval", fix: "florctl join approve laptop, after a comparison with the fingerprint that flor join prints here",
		},
		"a host that requests to join with a token that has expired": {
			hurt: func(p *patient) {
				p.joins("device.key", "request.json")
				p.state("cert-node", `{"state":"denied","error":{"kind":"denied","code":"token","message":"join token 0123 expired: florctl join token create"}}`)
			},
			begin: "needs: need cert-node is denied: denied (token)", fix: "florctl join token create",
		},
		"a host whose join was rejected": {
			hurt: func(p *patient) {
				p.joins("device.key")
				p.state("cert-node", `{"state":"denied","error":{"kind":"denied","code":"join","message":"an operator rejected device SHA256:abc: flor join with another token"}}`)
			},
			begin: "identity: this host's device is not admitted: an operator rejected device SHA256:abc", fix: "florctl join token create --host laptop, then flor join - here",
		},
		"a host that was rejected and joins again": {
			hurt: func(p *patient) {
				p.joins("device.key")
				p.state("cert-node", `{"state":"denied","error":{"kind":"denied","code":"join","message":"an operator rejected device SHA256:abc: flor join with another token"}}`)
				p.sh("touch --date 'now - 1 minute' " + p.Layout.NeedStateFile("cert-node"))
				p.joins("request.json")
			},
			begin: "identity: this host has requested to join, and waits for an operator's approval", fix: "florctl join approve laptop, after a comparison with the fingerprint that flor join prints here",
		},
		"an admission of another device": {
			hurt: func(p *patient) {
				p.joins("device.key", "admission.json")
				p.state("cert-node", `{"state":"denied","error":{"kind":"denied","code":"join","message":"of another device: flor join with another token"}}`)
			},
			begin: "needs: need cert-node is denied: denied (join)", fix: "flor join with another token",
		},
		"a provider that waits": {
			hurt: func(p *patient) {
				p.Laptop.Provide("oidc")
				p.units["florete-provider-oidc.service"] = units.Unit{Load: "loaded", Active: "active", Text: "waiting for the issuing certificate: run this"}
			},
			begin: "units: florete-provider-oidc.service is waiting for the issuing certificate: run this", fix: "what that says",
		},
		"a provider that fails": {
			hurt: func(p *patient) {
				p.Laptop.Provide("oidc")
				p.units["florete-provider-oidc.service"] = units.Unit{Load: "loaded", Active: "activating", Sub: "auto-restart", Log: "oidc users: no such file"}
			},
			begin: "units: florete-provider-oidc.service is activating (auto-restart): oidc users: no such file", fix: "mend what it reports; all of it: journalctl -u florete-provider-oidc.service",
		},
		"a unit that fails again and again": {
			hurt: func(p *patient) {
				p.units["florete-activate.service"] = units.Unit{Load: "loaded", Active: "activating", Sub: "auto-restart", Log: "it is broken"}
			},
			begin: "units: florete-activate.service is activating (auto-restart): it is broken", fix: "mend what it reports; all of it: journalctl -u florete-activate.service",
		},
		"a timer that is off at the next boot": {
			hurt: func(p *patient) {
				p.units["florete-refresh.timer"] = units.Unit{Load: "loaded", Active: "active", File: "disabled"}
			},
			begin: "units: florete-refresh.timer does not start at boot", fix: "systemctl enable florete-refresh.timer",
		},
		"an upstream that is down": {
			hurt: func(p *patient) {
				p.Reach.Publish = []document.Published{{ID: kit.ID("service/local"), Upstream: agenttest.RefusingTCP(t), Allow: []document.Allow{}}}
				p.AcceptLaptop()
				p.units["local.service"] = units.Unit{Load: "not-found"}
			},
			begin: "upstreams: behind service/local: dial tcp ", fix: "", // the test does not know the address
		},
		"a Workload API that does not answer": {
			hurt: func(p *patient) {
				p.Reach.Callers = append(p.Reach.Callers, document.Caller{ID: agenttest.Bob, Users: []string{}, UIDs: []uint32{64999}, Workload: true})
				p.AcceptLaptop()
			},
			begin: "workload: Workload API: ", fix: "systemctl restart florete-workload.socket",
		},
		"an account that is missing": {
			hurt: func(p *patient) {
				p.Reach.Callers = append(p.Reach.Callers, document.Caller{ID: agenttest.Bob, Users: []string{"no-such-account"}, UIDs: []uint32{}})
				p.AcceptLaptop()
				kit.Eventually(p, "the agent to report a problem", func() bool {
					r, _, err := status.Fetch(p.Context(), p.Laptop.Socket())
					return err == nil && len(r.Problems) > 0
				})
			},
			begin: "accounts: there is no account no-such-account, which is of user/bob", fix: "useradd --create-home --user-group no-such-account",
		},
		"an account of a provider that is not installed": {
			hurt: func(p *patient) {
				p.Reach.Callers = append(p.Reach.Callers, document.Caller{ID: agenttest.Bob, Users: []string{"florete-provider-none"}, UIDs: []uint32{}})
				p.AcceptLaptop()
				kit.Eventually(p, "the agent to report a problem", func() bool {
					r, _, err := status.Fetch(p.Context(), p.Laptop.Socket())
					return err == nil && len(r.Problems) > 0
				})
			},
			begin: "accounts: there is no account florete-provider-none, which is of user/bob", fix: "run install.sh of this host's bundle (florctl bundle)",
		},
		"a format that only a newer release knows": {
			hurt: func(p *patient) {
				p.state("cert-user-bob", `{"state":"waiting","error":{"kind":"transient","code":"newer-format","message":"upgrade the provider's programs"}}`)
			},
			begin: "needs: ", fix: "upgrade what the message says, this host's programs or those of forge: nixos-rebuild switch, or install its newest bundle",
		},
		"a file that an operator has not put there": {
			hurt: func(p *patient) {
				p.state("cert-user-bob", `{"state":"waiting","error":{"kind":"transient","code":"missing","message":"put it in /srv"}}`)
			},
			begin: "needs: need cert-user-bob is waiting: transient (missing): put it in /srv", fix: "what the message says, on forge",
		},
		"a need whose provider answers again": {
			hurt: func(p *patient) {
				p.state("cert-user-bob", `{"state":"waiting","error":{"kind":"transient","code":"unavailable","message":"connection refused"}}`)
			},
			begin: "needs: need cert-user-bob is waiting: transient (unavailable)", fix: "flor refetch cert-user-bob",
		},
		"a need whose message says what to do": {
			hurt: func(p *patient) {
				p.state("cert-user-bob", `{"state":"denied","error":{"kind":"denied","code":"revoked","message":"node/laptop is revoked: florctl reinstate --host laptop"}}`)
			},
			begin: "needs: need cert-user-bob is denied: denied (revoked)", fix: "florctl reinstate --host laptop",
		},
		"a busy provider": {
			hurt: func(p *patient) {
				p.state("cert-user-bob", `{"state":"waiting","next":1784011430,"error":{"kind":"transient","code":"busy","message":"too many requests"}}`)
			},
			begin: "needs: need cert-user-bob is waiting: transient (busy)", fix: "wait: it is requested again at 2026-07-14T06:43:50Z",
		},
		"a unit that is misspelt in the flake": {
			hurt: func(p *patient) {
				p.state("cert-user-bob", `{"state":"fulfilled","error":{"kind":"transient","code":"notify","message":"outlne.service: restart: Unit outlne.service not found."}}`)
			},
			begin: "needs: need cert-user-bob is delivered, but a unit of it was not restarted: outlne.service", fix: "name it in the flake as systemctl list-unit-files has it here, publish and deploy",
		},
		"settings that a kind may not read": {
			hurt: func(p *patient) {
				p.Laptop.Provide("oidc")
				p.sh("chmod 600 " + filepath.Join(p.Etc, "provider.hujson"))
				p.units["florete-provider-oidc.service"] = units.Unit{Load: "loaded", Active: "failed"}
			},
			begin: "units: florete-provider-oidc.service is failed", fix: "",
		},
		"a unit of an instance": {
			hurt: func(p *patient) {
				p.Instance = "blue"
				p.units["florete-agent.service"] = units.Unit{Load: "loaded", Active: "failed"}
				p.units["florete_blue-need-cert-user-alice.path"] = units.Unit{Load: "not-found", Active: "inactive"}
				p.units["florete_blue-need-cert-user-bob.path"] = units.Unit{Load: "loaded", Active: "failed"}
			},
			begin: "units: florete_blue-need-cert-user-bob.path is failed", fix: "systemctl reset-failed florete_blue-need-cert-user-bob.path; systemctl restart florete_blue-need-cert-user-bob.path",
		},
		"names of an instance": {
			hurt: func(p *patient) {
				p.Instance = "blue"
				p.write(p.Hosts, "127.0.0.1 localhost\n", 0o644)
				p.units["florete-hosts-file.service"] = units.Unit{Load: "not-found", Active: "inactive"}
			},
			begin: "names: ", fix: "systemctl restart florete_blue-hosts-file.service",
		},
		"another host's provider": {
			hurt:  func(p *patient) { p.Instance = "blue"; p.provider.Close() },
			begin: "providers: ", fix: "on forge: flor doctor",
		},
		"a need of an instance": {
			hurt: func(p *patient) {
				p.Instance = "blue"
				p.sh("rm " + p.Layout.NeedStateFile("cert-node"))
			},
			begin: "needs: ", fix: "systemctl restart florete_blue-activate.service",
		},
		"the agent of an instance": {
			hurt:  func(p *patient) { p.Instance = "blue"; p.stop["laptop"]() },
			begin: "agent: agent at ", fix: "systemctl restart florete_blue-agent.service",
		},
		"open key":      {hurt: func(p *patient) { p.sh("chmod 644 " + p.file("key.pem")) }, begin: "permissions: ", run: true},
		"closed SVID":   {hurt: func(p *patient) { p.sh("chmod 400 " + p.file("svid.pem")) }, begin: "permissions: ", run: true},
		"open host key": {hurt: func(p *patient) { p.sh("chmod 644 " + p.HostKey) }, begin: "permissions: ", run: true},
		"open state":    {hurt: func(p *patient) { p.sh("chmod 777 " + p.Layout.Need("")) }, begin: "permissions: ", run: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPatient(t)
			if c.hurt(p); c.begin == "" {
				p.healthy()
				return
			}
			if c.run {
				p.fixed()
				return
			}
			p.finds(c.begin, c.fix)
		})
	}
}

// TestSilence checks the findings for a forwarder that never answers and for a name that does not
// exist.
func TestSilence(t *testing.T) {
	if testing.Short() {
		t.Skip("left out by -short: it takes long")
	}
	p := newPatient(t)
	p.stop["ursula"]()
	name := strings.Repeat("a", 64) + ".example"
	p.Laptop.Provider = name + ":4600"
	p.AcceptLaptop()
	found := strings.Join(p.findings(), "\n")
	for _, want := range []string{
		"names: lookup " + name + ": no such host => write ADDRESS " + name + " into " + p.Hosts,
		"providers: cert provider forge at " + name,
		"forwarders: forwarder of service/outline at " + ursula + ":",
		"no answer over UDP => on " + ursula + ": flor doctor; and let UDP port ",
	} {
		if !strings.Contains(found, want) {
			t.Errorf("no %q in\n%s", want, found)
		}
	}
}

func TestPrint(t *testing.T) {
	r := doctor.Report{Host: "laptop", Checks: []doctor.Check{
		{Name: "clock", Seen: "compared with 1 providers"},
		{Name: "units", Seen: "0 of 1 active", Findings: []doctor.Finding{{Problem: "a \x1b[2J", Fix: "b"}}},
	}}
	var out bytes.Buffer
	if err := doctor.Print(&out, r); err != nil {
		t.Fatal(err)
	}
	const want = `ok  clock        compared with 1 providers
!!  units        0 of 1 active
    a ·[2J
      fix: b
1 finding
`
	if out.String() != want {
		t.Errorf("got\n%s", out.String())
	}
	b, err := json.Marshal(doctor.Run(t.Context(), doctor.Config{Layout: hostdir.Layout(t.TempDir())}))
	if err != nil || !strings.Contains(string(b), `{"name":"clock","seen":"nothing without a manifest","findings":[]}`) {
		t.Errorf("%s, %v", b, err)
	}
}

// TestUDPDoesNotPass checks that a forwarder that answers only over TCP is a finding. It is not a
// finding if the manifest requires TCP.
func TestUDPDoesNotPass(t *testing.T) {
	p := newPatient(t)
	p.Publish.Transport = document.OverTCP
	p.AcceptUrsula()
	kit.Eventually(t, "a forwarder without UDP", func() bool {
		return strings.Contains(strings.Join(p.findings(), "\n"), "no answer over UDP, TCP carries what goes there => let UDP port ")
	})
	p.Reach.Reach[0].Transport = document.OverTCP
	p.AcceptLaptop()
	p.healthy()
}

// member makes the provider host in a policy a member of etcd.
func member(p *document.Policy) {
	p.Store = &document.SharedStore{
		Kind: "etcd", Endpoints: []string{"https://127.0.0.1:2379"}, Replicas: map[string][]document.Device{},
		Member: &document.StoreMember{Name: "laptop", Cluster: []string{}, Clients: document.Called{Listen: []string{}, Called: []string{}}, Peers: document.Called{Listen: []string{}, Called: []string{}}},
	}
}
