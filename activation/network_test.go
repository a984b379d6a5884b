package activation

import (
	"encoding/json"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/florete/florete/activation/documents"
	"github.com/florete/florete/activation/event"
	"github.com/florete/florete/activation/fetch"
	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/internal/hostdir"
	"github.com/florete/florete/tests/kit"
	. "github.com/florete/florete/tests/kit/activationtest"
)

// TestNetworkManifestReloads checks that a newer manifest from the network comes in force without a
// restart.
func TestNetworkManifestReloads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost(t)
		stop := h.run()
		time.Sleep(time.Minute)
		next := h.manifest
		next.Needs = append(append([]document.Need{}, next.Needs...), kit.OIDCNeed("oidc-late", Service, "forge"))
		h.publish(2, next)
		time.Sleep(31 * time.Minute)
		if s := h.state("oidc-late"); s.State != hostdir.NeedFulfilled {
			t.Fatalf("oidc-late: %+v\n%s", s, h.lines())
		}
		s := stop()
		h.wantExit(s, event.ExitFulfilled)
		if len(s.Needs) != 4 {
			t.Errorf("%d needs", len(s.Needs))
		}
		h.wantLine("documents: taken from the network: manifest of ursula, serial 2, 4 needs")
		h.wantCalls(h.forge, "cert-node", 1)
		h.wantCalls(h.forge, "oidc-outline", 1)
		for _, c := range h.forge.Calls("oidc-late") {
			if c.Serial != 2 {
				t.Errorf("asked with serial %d", c.Serial)
			}
		}
		if calls := h.forge.Calls("config-documents"); calls[0].Serial != 1 || calls[len(calls)-1].Serial != 2 {
			t.Errorf("documents asked for with serials %d to %d, want 1 to 2", calls[0].Serial, calls[len(calls)-1].Serial)
		}
		h.wantExit(h.once(), event.ExitFulfilled) // the closure did not change: the network's stays
		h.wantCalls(h.forge, "oidc-late", 1)
	})
}

// TestDocumentsRequestSerial checks that documents are requested with the serial of the manifest in
// force.
func TestDocumentsRequestSerial(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost(t)
		stop := h.run()
		time.Sleep(time.Minute)
		h.publish(7, h.manifest)
		time.Sleep(40 * time.Minute)
		h.wantExit(stop(), event.ExitFulfilled)
		calls := h.forge.Calls("config-documents")
		if first, last := calls[0].Serial, calls[len(calls)-1].Serial; first != 1 || last != 7 {
			t.Errorf("requested with serial %d, then %d, want 1, then 7", first, last)
		}
	})
}

// TestHostKeyChanges checks that when the SSH host key of a running host changes, renewal waits
// until the flake declares the new key: the manifest with it is fetched with that key, without a
// restart.
func TestHostKeyChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost(t)
		stop := h.run()
		time.Sleep(time.Hour)
		key := kit.WriteHostKey(h.HostKey)
		time.Sleep(17 * time.Hour) // certificates are due
		for _, need := range []string{"cert-node"} {
			if s := h.state(need); s.State != hostdir.NeedDenied || s.Error.Code != fetch.CodeHostKey.Name {
				t.Errorf("%s: %+v", need, s)
			}
		}
		h.Declare(key)
		next := h.Manifest()
		h.publish(2, next)
		time.Sleep(2 * time.Hour)
		h.wantExit(stop(), event.ExitFulfilled)
		if calls := h.forge.Calls("cert-node"); len(calls) != 2 || calls[1].Enrols {
			t.Errorf("%+v", calls)
		}
	})
}

// TestHostKeyDeclaredBefore checks that if the flake declares another SSH host key before the host
// has it, the host receives nothing with the former one.
func TestHostKeyDeclaredBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost(t)
		stop := h.run()
		time.Sleep(time.Hour)
		file, err := os.ReadFile(h.HostKey)
		if err != nil {
			t.Fatal(err)
		}
		h.Declare(kit.WriteHostKey(h.HostKey))
		next, err := os.ReadFile(h.HostKey)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(h.HostKey, file, 0o600); err != nil {
			t.Fatal(err)
		}
		h.publish(2, h.Manifest())
		time.Sleep(17 * time.Hour)
		for _, need := range []string{"cert-node", "config-documents"} {
			if s := h.state(need); s.State != hostdir.NeedDenied || s.Error.Code != hostapi.CodeDeviceKey.Name {
				t.Errorf("%s with the former key: %+v", need, s)
			}
		}
		if err := os.WriteFile(h.HostKey, next, 0o600); err != nil {
			t.Fatal(err)
		}
		time.Sleep(15 * time.Second) // no hour: the file changed
		h.wantExit(stop(), event.ExitFulfilled)
	})
}

// TestNetworkManifestInOnePass checks that one pass continues with the manifest it fetched. A
// request under way gets a second to end; one that the new manifest cuts off is sent again.
func TestNetworkManifestInOnePass(t *testing.T) {
	for took, requests := range map[time.Duration]int{time.Second: 1, 3 * time.Second: 2} {
		synctest.Test(t, func(t *testing.T) {
			h := newHost(t)
			h.forge.SetRefuse(func(c Call) *hostapi.Error {
				switch c.Need {
				case "oidc-outline":
					time.Sleep(took) // longer than the documents take
				case "config-documents":
					time.Sleep(time.Second / 2) // until the other is under way
				}
				return nil
			})
			next := h.manifest
			next.Needs = append(append([]document.Need{}, next.Needs...), kit.OIDCNeed("oidc-late", Service, "forge"))
			h.publish(2, next)
			h.wantExit(h.once(), event.ExitFulfilled)
			h.wantCalls(h.forge, "oidc-late", 1)
			h.wantCalls(h.forge, "config-documents", 1)
			calls := h.forge.Calls("oidc-outline")
			if len(calls) != requests || calls[0].Key != calls[len(calls)-1].Key {
				t.Errorf("a request of %s: %+v, want %d of one key", took, calls, requests)
			}
		})
	}
}

func TestRefusedDocuments(t *testing.T) {
	for name, c := range map[string]struct {
		offer func(h *host)
		kind  hostapi.Class
		code  string
	}{
		"signed by another": {func(h *host) {
			h.forge.Offer(kit.Signed(6, h.manifest, kit.SigningKey("demo-1")))
		}, hostapi.Denied, documents.CodeTampered.Name},
		"changed body": {func(h *host) {
			d := kit.Signed(6, h.manifest, h.Signing)
			d.Body += " "
			h.forge.Offer(d)
		}, hostapi.Denied, documents.CodeTampered.Name},
		"of another host": {func(h *host) {
			m := h.manifest
			m.Host = "raishan"
			h.publish(6, m)
		}, hostapi.Denied, documents.CodeForeign.Name},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newHost(t)
				h.serial = 5
				h.deploy()
				c.offer(h)
				stop := h.run()
				time.Sleep(time.Second / 2)
				s := h.state("config-documents")
				if s.Error == nil || s.Error.Kind != string(c.kind) || s.Error.Code != c.code {
					t.Errorf("%+v: %+v", s, s.Error)
				}
				stop()
				d, err := h.config.State.Manifest()
				if err != nil || d.Envelope.Serial != 5 {
					t.Errorf("serial %d is in force: %v", d.Envelope.Serial, err)
				}
				if s := h.state("oidc-outline"); s.State != hostdir.NeedFulfilled {
					t.Errorf("oidc-outline: %+v", s)
				}
			})
		})
	}
}

// TestOlderDocumentCatchesUp checks a host that was deployed before its provider and therefore
// receives an older document: once the provider has caught up, so does the host, within minutes.
func TestOlderDocumentCatchesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost(t)
		h.serial = 5
		h.deploy()
		h.publish(4, h.manifest)
		stop := h.run()
		time.Sleep(time.Hour)
		h.publish(5, h.manifest)
		time.Sleep(5 * time.Minute)
		h.wantExit(stop(), event.ExitFulfilled)
	})
}

// TestClosureGoesBack checks that after a return by the closure the network does not bring back the
// reverted version, but does bring later ones.
func TestClosureGoesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost(t)
		h.wantExit(h.once(), event.ExitFulfilled)
		first, old := h.manifest, h.serial
		h.manifest.Needs = append(append([]document.Need{}, first.Needs...), kit.OIDCNeed("oidc-late", Service, "forge"))
		h.serial = 2
		h.deploy()
		time.Sleep(time.Hour)
		h.wantExit(h.once(), event.ExitFulfilled)
		second := h.manifest
		h.manifest, h.serial = first, old
		h.deploy()
		h.publish(2, second)
		time.Sleep(time.Hour)
		stop := h.run()
		time.Sleep(time.Hour)
		if s := stop(); len(s.Needs) != 3 || s.Exit() != event.ExitFulfilled {
			t.Fatalf("%+v\n%s", s, h.lines())
		}
		h.publish(1, first) // which is in force
		time.Sleep(time.Hour)
		h.wantExit(h.once(), event.ExitFulfilled)
		h.publish(1, second)
		time.Sleep(time.Hour)
		h.wantExit(h.once(), event.ExitWaiting)
		h.wantLine("transient (older-document): document from the network: manifest has serial 1, this host has already accepted serial 2")
		h.publish(3, second)
		time.Sleep(time.Hour)
		if s := h.once(); len(s.Needs) != 4 || s.Exit() != event.ExitFulfilled {
			t.Fatalf("%+v\n%s", s, h.lines())
		}
	})
}

func TestAnswersThatDoNotFit(t *testing.T) {
	for name, c := range map[string]struct {
		edit func(*document.Need)
		want string
	}{
		"missing value": {func(n *document.Need) { n.Deliver.Files["x"] = document.File{Value: "token", Mode: "0400"} }, `invalid (malformed): answer has no value "token" for file x`},
		"no account":    {func(n *document.Need) { n.Deliver.Owner = "nobody-here" }, `transient (account): owner "nobody-here": no such account on this host: create it`},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newHost(t)
				c.edit(h.need("oidc-outline"))
				h.deploy()
				if s := h.once(); s.Exit() == event.ExitFulfilled {
					t.Error("fulfilled")
				}
				h.wantLine(c.want)
			})
		})
	}
}

func TestManifestWithoutOwnCertificate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost(t)
		oidc := *h.need("oidc-outline")
		oidc.DependsOn = []string{}
		h.manifest.Needs = []document.Need{oidc}
		h.deploy()
		h.wantExit(h.once(), event.ExitRefused)
		h.wantLine("no need of kind cert for spiffe://demo.flor/node/ursula")
	})
}

func TestLineForSystemd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost(t)
		refuse(h.forge, "oidc-outline", hostapi.Errorf(hostapi.CodeNotGranted, "no\x1b[31m grant"))
		s := h.once()
		next := h.state("oidc-outline").Next.UTC().Format(time.TimeOnly)
		want := "2/3 needs fulfilled; oidc-outline denied (forge): denied (not-granted): no·[31m grant, next "
		if got := s.Line(); got[:len(want)] != want || len(got) != len(want)+len(next)+1 {
			t.Errorf("%s", got)
		}
		if _, err := json.Marshal(s); err != nil {
			t.Error(err)
		}
	})
}
