package document

import (
	"testing"

	"github.com/florete/florete/internal/spiffe"
)

// TestAliases checks that an exact name takes precedence over a wildcard that also matches, and
// that a wildcard matches only a single label.
func TestAliases(t *testing.T) {
	dial := func(path string) spiffe.Dialable {
		id, err := spiffe.ParseID("spiffe://demo.flor/service/" + path)
		if err != nil {
			t.Fatal(err)
		}
		d, err := spiffe.Dial(id)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	var m Manifest
	m.TrustDomain = "demo.flor"
	m.Forwarder.Reach = []Reachable{
		{ID: dial("apps").ID(), Aliases: []string{"*.apps.demo.flor.rete", "*.docs.demo.flor.rete"}},
		{ID: dial("wiki").ID(), Aliases: []string{"docs.demo.flor.rete"}},
		{ID: dial("wiki").ID(), Aliases: []string{"docs.demo.flor.rete"}, Port: "metrics"},
	}
	if err := m.checkAliases(); err != nil {
		t.Error(err)
	}
	a := m.Aliases()
	for name, want := range map[string]string{
		"docs.demo.flor.rete":        "wiki",
		"DOCS.demo.flor.rete.":       "wiki",
		"shop.apps.demo.flor.rete":   "apps",
		"docs.docs.demo.flor.rete":   "apps",
		"a.shop.apps.demo.flor.rete": "",
		"apps.demo.flor.rete":        "",
		"*.apps.demo.flor.rete":      "",
		".apps.demo.flor.rete":       "",
		"a b.apps.demo.flor.rete":    "",
		"wiki.demo.flor.rete":        "", // no other name
		"docs.demo.flor":             "",
		"":                           "",
	} {
		got, ok := a.Resolve(name)
		if ok != (want != "") || ok && got != dial(want) {
			t.Errorf("%s leads to %v, want %q", name, got.ID(), want)
		}
	}
	for _, wrong := range [][]string{
		{"docs.demo.flor.rete"}, {"docs"}, {"docs.other.flor.rete"}, {"a.b.demo.flor.rete"}, {"*.demo.flor.rete"}, {"*.*.demo.flor.rete"},
		{"Docs.demo.flor.rete"}, {"docs.demo.flor.rete\n127.0.0.1 bank.example"}, {".demo.flor.rete"},
		{"news.demo.flor.rete", "news.demo.flor.rete"},
	} {
		m := m
		m.Forwarder.Reach = append(m.Forwarder.Reach[:3:3], Reachable{ID: dial("blog").ID(), Aliases: wrong})
		if m.checkAliases() == nil {
			t.Errorf("alias %q is accepted", wrong)
		}
	}
}
