package graph

import (
	"strings"
	"testing"

	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/nix/operator/compile"
	"github.com/florete/florete/tests/kit"
)

// TestPorts checks that a role for one port of a service ends there, that one for all ports ends at
// the service, and that ports without roles of their own are not drawn.
func TestPorts(t *testing.T) {
	wiki := kit.ID("service/wiki")
	c, err := New(compile.Snapshot{Topology: compile.Topology{
		Name:  "demo",
		Hosts: map[string]compile.Host{"forge": {Services: []string{"wiki"}}, "laptop": {Users: []string{"ann", "ben"}}},
		Services: map[string]compile.Service{"wiki": {
			IDs: []spiffe.ID{wiki}, Hosts: []string{"forge"}, Published: true, Visibility: "cluster",
			Ports: map[string]compile.Port{"http": {}, "metrics": {}},
		}},
		Users: map[string]compile.User{
			"ann": {ID: kit.ID("user/ann"), Roles: []string{"reader"}, Hosts: []string{"laptop"}},
			"ben": {ID: kit.ID("user/ben"), Roles: []string{"scraper"}, Hosts: []string{"laptop"}},
		},
		Roles: map[string]compile.Role{
			"reader":  {Services: []string{"wiki"}},
			"scraper": {Services: []string{"wiki:metrics"}, Reach: []spiffe.ID{wiki}, Ports: map[spiffe.ID][]string{wiki: {"metrics"}}},
		},
		Parts: map[string]compile.Part{"wiki:metrics": {Service: "wiki", Hosts: []string{"forge"}, IDs: []spiffe.ID{wiki}, Port: "metrics"}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	dot := string(DOT(c))
	for edge, want := range map[string]bool{
		`"role/scraper" -> "service/forge/wiki:metrics";`: true, `"role/scraper" -> "service/forge/wiki";`: false,
		`"role/reader" -> "service/forge/wiki";`: true, `"role/reader" -> "service/forge/wiki:metrics";`: false,
	} {
		if strings.Contains(dot, edge) != want {
			t.Errorf("%s is drawn: %v, want %v\n%s", edge, !want, want, dot)
		}
	}
	for form, draw := range formats {
		for _, c := range around(t, c, "", "forge", "laptop") {
			text := string(draw(c))
			if !strings.Contains(text, "wiki:metrics") || strings.Contains(text, "wiki:http") {
				t.Errorf("%s around %q: want wiki:metrics, and no wiki:http:\n%s", form, c.around, text)
			}
		}
	}
	p := lay(c)
	for _, e := range p.edges() {
		if row := rowAt(p, e.side); e.reaches && (e.role.name == "scraper") != (row == "wiki:metrics") {
			t.Errorf("role %s ends at %s", e.role.name, row)
		}
	}
}

func around(t *testing.T, whole Cluster, hosts ...string) (all []Cluster) {
	t.Helper()
	for _, host := range hosts {
		c, err := whole, error(nil)
		if host != "" {
			c, err = whole.Around(host)
		}
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, c)
	}
	return all
}

// rowAt returns the content drawn at a place.
func rowAt(p *picture, at rect) string {
	for _, b := range p.boxes {
		for _, r := range b.rows {
			if r.rect == at {
				return r.name
			}
		}
	}
	return ""
}
