package rules

import (
	"fmt"
	"strings"
	"testing"
)

var acme = Tenant{Name: "acme", TrustDomain: "demo.flor", Namespaces: []string{"payments", "logs"}, Issuers: []string{"corp"}}

const wiki = "spiffe://demo.flor/service/wiki"

func compile(t *testing.T, sets ...Set) *Rules {
	t.Helper()
	r, err := Compile(acme, sets...)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

var set = Set{
	Policies: []Policy{
		{"role:reader", "stream.read", "stream:acme/payments/*"},
		{"role:reader", "stream.read", "stream:acme/payments/orders"},
		{"role:writer", "stream.write", "namespace:acme/payments"},
		{wiki, "stream.read", "stream:acme/logs/wiki"},
		{"group:corp/devs", "stream.read", "tenant:acme"},
	},
	Groupings: []Grouping{
		{wiki, "role:writer"},
		{"role:writer", "role:reader"},
		{"subject:corp/alice", "role:reader"},
	},
}

func text(p []Permission) string {
	var all []string
	for _, p := range p {
		all = append(all, p.Action+" "+p.Object.String())
	}
	return strings.Join(all, ", ")
}

func TestPermissions(t *testing.T) {
	r := compile(t, set, set)
	objects := func(all ...string) (of []Object) {
		for _, s := range all {
			o, err := ParseObject(s)
			if err != nil {
				t.Fatal(err)
			}
			of = append(of, o)
		}
		return of
	}
	for _, c := range []struct {
		subjects string
		narrow   Narrow
		want     string
	}{
		{wiki, Narrow{}, "stream.read stream:acme/logs/wiki, stream.read stream:acme/payments/*, stream.write namespace:acme/payments"},
		{wiki, Narrow{Actions: []string{"stream.write"}}, "stream.write namespace:acme/payments"},
		{wiki, Narrow{Objects: objects("stream:acme/payments/orders")}, "stream.read stream:acme/payments/orders, stream.write stream:acme/payments/orders"},
		{wiki, Narrow{Actions: []string{"stream.read"}, Objects: objects("tenant:acme")}, "stream.read stream:acme/logs/wiki, stream.read stream:acme/payments/*"},
		{wiki, Narrow{Objects: objects("tenant:other", "cache:acme/logs/wiki")}, ""},
		{wiki, Narrow{Actions: []string{"stream.delete"}}, ""},
		{"subject:corp/alice", Narrow{}, "stream.read stream:acme/payments/*"},
		{"subject:corp/alice group:corp/devs", Narrow{}, "stream.read tenant:acme"},
		{"subject:corp/eve", Narrow{}, ""},
		{"spiffe://demo.flor/service/wiki2", Narrow{}, ""},
	} {
		if got := text(r.Permissions(strings.Fields(c.subjects), c.narrow)); got != c.want {
			t.Errorf("%s, %v: %s\nwant %s", c.subjects, c.narrow, got, c.want)
		}
	}
}

// TestRolesOfRoles checks permissions that come from roles within roles. The roles are deeply
// nested and contain each other in a circle.
func TestRolesOfRoles(t *testing.T) {
	deep := Set{Policies: []Policy{{"role:r30", "stream.read", "tenant:acme"}}, Groupings: []Grouping{{wiki, "role:r0"}, {"role:r30", "role:r0"}}}
	for i := range 30 {
		deep.Groupings = append(deep.Groupings, Grouping{fmt.Sprintf("role:r%d", i), fmt.Sprintf("role:r%d", i+1)})
	}
	if got := text(compile(t, deep).Permissions([]string{wiki}, Narrow{})); got != "stream.read tenant:acme" {
		t.Errorf("%q", got)
	}
}

func TestEmpty(t *testing.T) {
	if got := text(compile(t).Permissions([]string{wiki}, Narrow{})); got != "" {
		t.Error(got)
	}
}

func TestRefused(t *testing.T) {
	for want, p := range map[string]Policy{
		"of every tenant":                        {wiki, "a.b", "tenant:*"},
		"not of tenant acme":                     {wiki, "a.b", "stream:other/payments/*"},
		"has no namespace \"hr\"":                {wiki, "a.b", "stream:acme/hr/*"},
		"has no issuer \"evil\"":                 {"subject:evil/alice", "a.b", "tenant:acme"},
		"not of trust domain":                    {"spiffe://evil.flor/service/wiki", "a.b", "tenant:acme"},
		"and no *":                               {wiki, "*", "tenant:acme"},
		"want a SPIFFE ID, subject:ISSUER":       {"*", "a.b", "tenant:acme"},
		"\"role:*\": want a SPIFFE ID":           {"role:*", "a.b", "tenant:acme"},
		"\"subject:corp/a b\": want a SPIFFE ID": {"subject:corp/a b", "a.b", "tenant:acme"},
		"\"group:corp/\": want a SPIFFE ID":      {"group:corp/", "a.b", "tenant:acme"},
	} {
		if _, err := Compile(acme, Set{Policies: []Policy{p}}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want %q", p, err, want)
		}
	}
	for want, g := range map[string]Grouping{
		"want role:NAME":   {wiki, "subject:corp/alice"},
		"has itself in it": {"role:a", "role:a"},
		"has no issuer":    {"group:evil/a", "role:a"},
	} {
		if _, err := Compile(acme, Set{Groupings: []Grouping{g}}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want %q", g, err, want)
		}
	}
	for value, ok := range map[string]bool{"alice": true, "auth0|42": true, "a@b.c": true, "a b": false, "": false, "a,b": false, "ä": false, "\x00": false, strings.Repeat("a", 256): false} {
		if _, err := Subject("corp", value); (err == nil) != ok {
			t.Errorf("%q: %v", value, err)
		}
	}
}
