package forward_test

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/florete/florete/agent/ping"
	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostdir"
	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/tests/kit"
	"github.com/florete/florete/tests/kit/agenttest"
)

const blue = "blue.example"

// federate makes a host's next manifests federate with the trust domain of a CA.
func federate(h *agenttest.Host, with *kit.CA, sequence uint64) {
	domain := with.Root.TrustDomain()
	h.Federation = []document.Foreign{{TrustDomain: domain, Bundle: string(with.Bundle(sequence, time.Minute)), Need: "federation-other"}}
	h.Needs = []document.Need{kit.FederationNeed("other", domain, "forge")}
}

// bundle delivers a trust bundle to a host.
func bundle(h *agenttest.Host, text []byte) {
	kit.Swap(hostdir.Current(h.Layout.Need("federation-other")), map[string][]byte{document.FileTrustBundle: text})
}

// TestFederation uses two clusters with CAs of their own. A foreign caller must reach the service
// to which its role leads, and no other. Root rotations of either side must be followed, and
// without the role the caller's connections must end.
func TestFederation(t *testing.T) {
	caller, other := kit.IDIn(blue, "user/alice"), kit.ID("service/other")
	red, blueCA := kit.NewCA(), kit.NewCAOf(blue)
	ursula, laptop := agenttest.NewHost(t, "ursula", red), agenttest.NewHost(t, "laptop", blueCA)
	federate(ursula, blueCA, 1)
	federate(laptop, red, 1)

	endpoint, local, refused, proxy := agenttest.Loopback().String(), agenttest.Loopback(), agenttest.Loopback(), agenttest.Loopback()
	publish := document.Forwarder{Listen: []string{endpoint}, Publish: []document.Published{
		{ID: other, Upstream: agenttest.Echo(t), Allow: []document.Allow{{ID: alice}}}, // of the same name, of ours
		{ID: outline, Upstream: agenttest.Echo(t), Allow: []document.Allow{{ID: caller}}},
	}}
	ursula.Accept(publish, outline, other)
	reach := func(id spiffe.ID, at document.Reachable) document.Reachable {
		at.ID, at.Callers, at.Endpoints = id, []spiffe.ID{caller}, []document.Addresses{{endpoint}}
		return at
	}
	laptop.Accept(document.Forwarder{
		Reach:   []document.Reachable{reach(other, document.Reachable{Listen: refused}), reach(outline, document.Reachable{Listen: local})},
		Callers: []document.Caller{{ID: caller, UIDs: []uint32{uint32(os.Getuid())}}},
		SOCKS:   []document.SOCKS{{ID: caller, Listen: proxy}},
	}, caller)
	deliver := func(h *agenttest.Host, ca *kit.CA, ids ...spiffe.ID) {
		for _, id := range ids {
			h.Deliver(ca, id, time.Hour)
		}
	}
	deliver(ursula, red, kit.ID("node/ursula"), outline, other)
	deliver(laptop, blueCA, kit.IDIn(blue, "node/laptop"), caller)
	for _, h := range []*agenttest.Host{ursula, laptop} {
		run(t, h)
		kit.Eventually(t, h.Name+" to run", func() bool { return report(t, h).State == "running" })
	}
	reached := func() bool { return reaches(local.String()) }
	if !reached() {
		t.Fatal("the foreign caller does not reach what its role leads to")
	}
	if reaches(refused.String()) {
		t.Error("the foreign caller reaches what no role of its leads to")
	}
	// By its whole name, too; a name of that trust domain that no role leads to is none.
	for name, want := range map[string]byte{"outline.demo.flor.rete": 0, "Outline.demo.flor.rete.": 0, "wiki.demo.flor.rete": 4, "outline.blue.example.rete": 2} {
		if conn, got := socksDial(t, proxy.String(), name, 80); got != want || want == 0 && agenttest.Ping(conn) != nil {
			t.Errorf("SOCKS5 replies %d to %s, want %d", got, name, want)
		}
	}

	// flor ping finds it by this name alone.
	for name, want := range map[string]string{"outline.demo.flor.rete": "", "outline": ping.Name, "wiki.demo.flor.rete": ping.Name} {
		r, err := ping.Run(t.Context(), ping.Config{
			Socket: ping.Beside(laptop.Socket()),
			Lookup: func(context.Context, string) ([]string, error) { return []string{agenttest.LoopbackIP.String()}, nil },
		}, name)
		if broken, _ := r.Broken(); err != nil || broken.Name != want {
			t.Errorf("flor ping %s: %+v, %v, want broken: %q", name, r, err, want)
		}
	}

	// Blue's root is replaced: announced, used, retired.
	next := kit.NewCAOf(blue)
	bundle(ursula, blueCA.Bundle(2, time.Minute, next))
	laptop.Roots = []string{blueCA.RootPEM(), next.RootPEM()}
	held := dial(t, local.String())
	if err := agenttest.Ping(held); err != nil {
		t.Fatal(err)
	}
	bundle(ursula, next.Bundle(3, time.Minute))
	wantReset(t, held) // which the root that has gone vouched for
	if reached() {
		t.Error("a root that has gone vouches for the caller")
	}
	laptop.Accept(document.Forwarder{
		Reach:   []document.Reachable{reach(outline, document.Reachable{Listen: local})},
		Callers: []document.Caller{{ID: caller, UIDs: []uint32{uint32(os.Getuid())}}},
	}, caller)
	deliver(laptop, next, kit.IDIn(blue, "node/laptop"), caller)
	kit.Eventually(t, "the caller by the next root", reached)

	// So is red's.
	following := kit.NewCA()
	ursula.Roots = []string{red.RootPEM(), following.RootPEM()}
	ursula.Accept(publish, outline, other)
	deliver(ursula, following, kit.ID("node/ursula"), outline, other)
	held = dial(t, local.String())
	if err := agenttest.Ping(held); err != nil {
		t.Fatal(err)
	}
	bundle(laptop, following.Bundle(2, time.Minute))
	wantReset(t, held) // to a service that was verified with the former root
	kit.Eventually(t, "the service by the next root", reached)

	// The role is removed.
	held = dial(t, local.String())
	if err := agenttest.Ping(held); err != nil {
		t.Fatal(err)
	}
	publish.Publish[1].Allow = nil
	ursula.Accept(publish, outline, other)
	wantReset(t, held)
	if reached() {
		t.Error("the foreign caller reaches the service without its role")
	}
}

// TestNeighbours uses two clusters of one trust domain, each with an issuing CA below their common
// root, and no bundle. A caller of one must reach the service of the other to which its role leads,
// by a name of the trust domain, and no other. A process with the service's ID below another root
// must be refused as an impostor.
func TestNeighbours(t *testing.T) {
	caller, other := kit.ID("user/bob"), kit.ID("service/other")
	red := kit.NewCA()
	for what, ca := range map[string]*kit.CA{"the neighbour": red, "an impostor": kit.NewCA()} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			ursula, laptop, beside := agenttest.NewHost(t, "ursula", red), agenttest.NewHost(t, "laptop", red), red.Beside()
			ursula.Roots = append(ursula.Roots, ca.RootPEM()) // ursula itself is fooled
			endpoint, local, refused, proxy := agenttest.Loopback().String(), agenttest.Loopback(), agenttest.Loopback(), agenttest.Loopback()
			ursula.Accept(document.Forwarder{Listen: []string{endpoint}, Publish: []document.Published{
				{ID: other, Upstream: agenttest.Echo(t), Allow: []document.Allow{{ID: alice}}},
				{ID: outline, Upstream: agenttest.Echo(t), Allow: []document.Allow{{ID: caller}}},
			}}, outline, other)
			reach := func(id spiffe.ID, at document.Reachable) document.Reachable {
				at.ID, at.Callers, at.Endpoints = id, []spiffe.ID{caller}, []document.Addresses{{endpoint}}
				return at
			}
			laptop.Accept(document.Forwarder{
				Reach:   []document.Reachable{reach(other, document.Reachable{Listen: refused}), reach(outline, document.Reachable{Listen: local})},
				Callers: []document.Caller{{ID: caller, UIDs: []uint32{uint32(os.Getuid())}}},
				SOCKS:   []document.SOCKS{{ID: caller, Listen: proxy}},
			}, caller)
			ursula.Deliver(red, kit.ID("node/ursula"), time.Hour)
			ursula.Deliver(red, other, time.Hour)
			ursula.Deliver(ca, outline, time.Hour)
			laptop.Deliver(beside, kit.ID("node/laptop"), time.Hour)
			laptop.Deliver(beside, caller, time.Hour)
			for _, h := range []*agenttest.Host{ursula, laptop} {
				run(t, h)
				kit.Eventually(t, h.Name+" to run", func() bool { return report(t, h).State == "running" })
			}
			if ca != red {
				wantRefused(t, local.String())
				refusals(t, laptop, "impostor", 1)
				return
			}
			if err := agenttest.Ping(dial(t, local.String())); err != nil {
				t.Fatal("the neighbour does not reach what its role leads to", err)
			}
			wantRefused(t, refused.String())
			for name, want := range map[string]byte{"outline.demo.flor.rete": 0, "wiki.demo.flor.rete": 2} {
				if conn, got := socksDial(t, proxy.String(), name, 80); got != want || want == 0 && agenttest.Ping(conn) != nil {
					t.Errorf("SOCKS5 replies %d to %s, want %d", got, name, want)
				}
			}
		})
	}
}

// TestFederatedImpostor checks that a foreign service must prove its ID by the bundle of its own
// trust domain. Certificates of an unknown CA or of the caller's own trust domain must be refused.
func TestFederatedImpostor(t *testing.T) {
	caller := kit.IDIn(blue, "user/alice")
	red, blueCA, own := kit.NewCA(), kit.NewCAOf(blue), kit.NewCA()
	for what, ca := range map[string]*kit.CA{"red": red, "a stranger": kit.NewCA(), "a root of blue": own} {
		t.Run(what, func(t *testing.T) {
			ursula, laptop := agenttest.NewHost(t, "ursula", red), agenttest.NewHost(t, "laptop", blueCA)
			ursula.Roots = append(ursula.Roots, ca.RootPEM()) // ursula itself is fooled
			if ca == own {
				laptop.Roots = append(laptop.Roots, own.RootPEM())
			}
			federate(ursula, blueCA, 1)
			federate(laptop, red, 1)
			endpoint, local := agenttest.Loopback().String(), agenttest.Loopback()
			ursula.Accept(document.Forwarder{Listen: []string{endpoint}, Publish: []document.Published{
				{ID: outline, Upstream: agenttest.Echo(t), Allow: []document.Allow{{ID: caller}}},
			}}, outline)
			laptop.Accept(document.Forwarder{
				Reach:   []document.Reachable{{ID: outline, Callers: []spiffe.ID{caller}, Listen: local, Endpoints: []document.Addresses{{endpoint}}}},
				Callers: []document.Caller{{ID: caller, UIDs: []uint32{uint32(os.Getuid())}}},
			}, caller)
			ursula.Deliver(red, kit.ID("node/ursula"), time.Hour)
			ursula.Deliver(ca, outline, time.Hour)
			laptop.Deliver(blueCA, kit.IDIn(blue, "node/laptop"), time.Hour)
			laptop.Deliver(blueCA, caller, time.Hour)
			for _, h := range []*agenttest.Host{ursula, laptop} {
				run(t, h)
				kit.Eventually(t, h.Name+" to run", func() bool { return report(t, h).State == "running" })
			}
			if ca == red {
				if err := agenttest.Ping(dial(t, local.String())); err != nil {
					t.Fatal("the service itself is not reached: this test sees nothing", err)
				}
				return
			}
			wantRefused(t, local.String())
			refusals(t, laptop, "impostor", 1)
		})
	}
}
