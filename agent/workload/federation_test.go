package workload_test

import (
	"testing"
	"time"

	"github.com/spiffe/go-spiffe/v2/bundle/spiffebundle"
	"github.com/spiffe/go-spiffe/v2/spiffeid"
	"github.com/spiffe/go-spiffe/v2/workloadapi"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostdir"
	"github.com/florete/florete/tests/kit"
)

const blue = "blue.example"

var blueDomain = spiffeid.RequireTrustDomainFromString(blue)

// federate makes the host federate with a foreign trust domain, whose first bundle is given.
func (h *host) federate(first []byte) {
	h.Federation = []document.Foreign{{TrustDomain: blue, Bundle: string(first), Need: "federation-blue"}}
	h.Needs = append(h.Needs, kit.FederationNeed("blue", blue, "forge"))
}

// TestFederated checks that a process gets the newest bundle of a foreign trust domain whose
// identities may call it, and can verify tokens of that domain. Other processes must not get the
// bundle.
func TestFederated(t *testing.T) {
	for name, federates := range map[string][]string{"federates": {blue}, "does not": nil} {
		t.Run(name, func(t *testing.T) {
			h, _ := jwtHost(t)
			ca, next, s := kit.NewCAOf(blue), kit.NewCAOf(blue), newSigner(t, "blue-1")
			h.federate(ca.Bundle(1, time.Minute))
			h.accept(document.Caller{ID: wiki, UIDs: me(), Workload: true, Federates: federates}, document.Caller{ID: blog, UIDs: []uint32{4242}, Workload: true, Federates: []string{blue}})
			h.deliver(wiki)
			h.serve(t)
			source, err := workloadapi.NewX509Source(within(t), workloadapi.WithClientOptions(workloadapi.WithAddr(h.addr)))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { source.Close() })
			trusts := func(ca *kit.CA) bool {
				b, err := source.GetX509BundleForTrustDomain(blueDomain)
				return err == nil && b.HasX509Authority(ca.Root.Certificate)
			}
			token := s.sign(t, "spiffe://"+blue+"/any/path", "vault", time.Now())
			if federates == nil {
				if trusts(ca) || h.validate(t, token) == nil {
					t.Error("it has the bundle of blog")
				}
				return
			}
			if !trusts(ca) {
				t.Error("the first bundle is not there")
			}
			b, err := spiffebundle.Parse(blueDomain, next.Bundle(2, time.Minute))
			if err == nil {
				err = b.AddJWTAuthority(s.id, s.key.Public())
			}
			if err != nil {
				t.Fatal(err)
			}
			text, err := b.Marshal()
			if err != nil {
				t.Fatal(err)
			}
			kit.Swap(hostdir.Current(h.Layout.Need("federation-blue")), map[string][]byte{document.FileTrustBundle: text})
			kit.Eventually(t, "the next bundle is there", func() bool { return trusts(next) && !trusts(ca) })
			if err := h.validate(t, token); err != nil {
				t.Errorf("a token of the foreign trust domain: %v", err)
			}
			if h.validate(t, s.sign(t, wiki.String(), "vault", time.Now())) == nil {
				t.Error("a foreign key verifies a token of our own")
			}
			ctx, err := workloadapi.FetchX509Context(within(t), workloadapi.WithAddr(h.addr))
			if err != nil || !ctx.Bundles.Has(blueDomain) {
				t.Errorf("FetchX509SVID has no federated bundle: %v", err)
			}
			keys, err := workloadapi.FetchJWTBundles(within(t), workloadapi.WithAddr(h.addr))
			if err != nil || !keys.Has(blueDomain) || !keys.Has(spiffeid.RequireTrustDomainFromString(kit.Domain)) {
				t.Errorf("FetchJWTBundles: %v", err)
			}
		})
	}
}
