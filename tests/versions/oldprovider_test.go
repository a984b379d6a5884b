package versions

import (
	"bytes"
	"strings"
	"testing"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/internal/hostdir"
	"github.com/florete/florete/tests/local"
)

// TestOldProvider: a provider of the oldest release answers hosts of this one. What it does
// not know waits until its programs are exchanged.
func TestOldProvider(t *testing.T) {
	old, new := releases(t)
	c := start(t, old)
	c.renews(t, c.b, each(c.b)...)
	c.renews(t, c.c, each(c.c)...)

	t.Log("documents over the network, of the services of c alone: the oldest provider has its policy from the closure")
	late := c.publish(t, "late", map[string]any{"late": "c"})
	c.has(t, late, c.p, c.b, c.c)

	t.Log("what c reports is refused, and costs it nothing")
	c.until(t, "a report of c to be refused", func() bool { return c.refusedReport(t, c.c) })
	c.renews(t, c.c, documents)

	t.Log("a secret is not rotated yet, and stays")
	secret := func() string { v, err := c.c.Value("oidc-wiki-c", "client-secret"); check(t, err); return v }
	former := secret()
	c.command(t, c.c, "rotate", "oidc-wiki-c")
	c.waits(t, c.c, "oidc-wiki-c", "up to 1.1", "up to 1.0")
	if secret() != former {
		t.Error("another secret is delivered")
	}

	t.Log("a policy of a newer format waits, with the grants that it has for the late service")
	closure := c.Path("newer")
	check(t, local.Copy(c.Path("late", "p"), closure))
	edit(t, closure, document.EnvelopeFile(document.DocPolicy), `"format":"1.0"`, `"format":"1.1"`)
	check(t, c.p.Deploy(closure))
	check(t, c.p.Activate())
	c.closureWaits(t, c.p)
	c.until(t, "the provider to refuse it", func() bool {
		return logged(t, c.p, local.ProviderPart("cert"), "has format 1.1", "up to 1.0", "upgrade")
	})
	c.renews(t, c.b, each(c.b)...)
	if s := state(t, c.c, "cert-service-late"); s.Error == nil || s.Error.Code != hostapi.CodePolicyBehind.Name {
		t.Errorf("the certificate of the late service is %+v, want one that waits for the policy", s)
	}

	t.Log("this release on the state of the oldest provider")
	before, decisions := needs(t, c.b), len(c.decisions(t))
	c.exchange(t, c.p, new)
	c.until(t, "the secret to be rotated", func() bool { return secret() != former })
	c.reaches(t, c.b, "tcp", "late")
	policy, err := document.Read(hostdir.Current(c.p.Layout().Documents()), document.DocPolicy)
	check(t, err)
	if policy.Envelope.Format != (document.Format{Major: 1, Minor: 1}) {
		t.Errorf("the policy in force has format %s", policy.Envelope.Format)
	}

	// Published documents lay in a directory, and are in the store now. The flake has them:
	// until it is published again, hosts keep theirs.
	c.until(t, "the documents of b to be missing", func() bool {
		e := state(t, c.b, documents).Error
		return e != nil && e.Code == hostapi.CodeMissing.Name
	})
	c.Operator = new.operator(c.Work)
	c.foreign(t, "late")
	c.flake(t)
	again := c.publish(t, "again", nil)
	c.has(t, again, c.hosts()...)
	c.fulfilled(t)
	kept(t, c.b, before)
	if now := len(c.decisions(t)); now <= decisions {
		t.Errorf("the audit log has %d rows, had %d", now, decisions)
	}
	c.renews(t, c.b, each(c.b)...)
	c.same(t, "late", "again")

	t.Log("the oldest on the state of this release")
	rotated := secret()
	check(t, c.p.Deploy(c.Path("late", "p"))) // that of the generation of the system
	c.exchange(t, c.p, old)
	c.Operator = old.operator(c.Work)
	c.foreign(t, "again")
	c.renews(t, c.b, each(c.b)...)
	// It would let the former secret work again. So it is made unable to read that client.
	c.command(t, c.c, "refetch", "oidc-wiki-c")
	c.until(t, "a client that was rotated to be refused", func() bool {
		e := state(t, c.c, "oidc-wiki-c").Error
		return e != nil && e.Code == hostapi.CodeInternal.Name
	})
	// It serves what it published, and hosts do not go back.
	c.until(t, "older documents to be refused", func() bool { e := state(t, c.b, documents).Error; return e != nil && e.Code == "older-document" })
	if serial(t, c.b) != again {
		t.Errorf("b has the documents with serial %d in force, want %d", serial(t, c.b), again)
	}
	c.flake(t)
	c.has(t, c.publish(t, "anew", nil), c.hosts()...)

	c.exchange(t, c.p, new)
	c.renews(t, c.c, each(c.c)...)
	if secret() != rotated {
		t.Error("the secret is another than before")
	}
}

// foreign checks that documents which florctl of one release signed are refused by a
// provider of the other: operators use the release of their providers.
func (c *cluster) foreign(t *testing.T, name string) {
	t.Helper()
	if err := c.Publish(t.Context(), c.p, name); err == nil || !strings.Contains(err.Error(), "want what florctl publish") {
		t.Errorf("documents of another release's florctl are imported: %v", err)
	}
}

// same checks that two commits have the same documents, but for their envelopes.
func (c *cluster) same(t *testing.T, one, other string) {
	t.Helper()
	kinds := map[*local.Host][]string{c.p: {document.DocManifest, document.DocPolicy}, c.b: {document.DocManifest}, c.c: {document.DocManifest}}
	for h, of := range kinds {
		for _, kind := range of {
			a, err := document.Read(c.Path(one, h.Name), kind)
			check(t, err)
			b, err := document.Read(c.Path(other, h.Name), kind)
			check(t, err)
			_, was, _ := a.Bytes()
			_, is, _ := b.Bytes()
			if !bytes.Equal(was, is) || a.Envelope.Format != b.Envelope.Format {
				t.Errorf("%s of %s, which uses nothing new: the compiler of the oldest release makes format %s\n%s\nthis one format %s\n%s",
					kind, h.Name, a.Envelope.Format, was, b.Envelope.Format, is)
			}
		}
	}
}

// decisions are what p decided so far.
func (c *cluster) decisions(t *testing.T) []local.Decision {
	t.Helper()
	all, err := local.Operator{Bin: c.p.Bin}.Audit(t.Context(), c.p)
	check(t, err)
	return all
}

// refusedReport reports whether p has refused, for its format, what is no request for a need.
func (c *cluster) refusedReport(t *testing.T, from *local.Host) bool {
	t.Helper()
	for _, d := range c.decisions(t) {
		if d.Caller == from.Manifest.Identity.ID.String() && d.Need == "" && d.Code == hostapi.CodeNewerFormat.Name {
			return true
		}
	}
	return false
}
