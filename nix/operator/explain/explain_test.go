package explain

import (
	"encoding/json"
	"flag"
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/nix/operator/compile"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// example returns a cluster in the form in which Nix evaluates it.
func example(t *testing.T) *Access { return read(t, "testdata") }

func read(t *testing.T, dir string) *Access {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, "topology.json"))
	if err != nil {
		t.Fatal(err)
	}
	var top compile.Topology
	if err := json.Unmarshal(b, &top); err != nil {
		t.Fatal(err)
	}
	return New(top)
}

// TestExplain compares answers with the files in testdata. The first line of a file is the
// question, "explain WHO SERVICE" or "who-can SERVICE", and the rest is the answer. The folders
// contain questions about the parts of services and exceptions (parts, for the topology
// tests/golden/compiler/parts), services with several ports (ports), roles in roles and teams in
// teams (links), strangers and the rules of an ingress (rules, for
// tests/golden/compiler/ingress-rules), accounts at SSH services (logins), and roles that can be
// requested (requests, for tests/golden/compiler/access-request).
func TestExplain(t *testing.T) {
	for _, dir := range []string{"testdata", "testdata/parts", "testdata/ports", "testdata/links", "testdata/logins", "testdata/rules", "testdata/requests"} {
		explained(t, dir)
	}
}

func explained(t *testing.T, dir string) {
	a := read(t, dir)
	files, _ := filepath.Glob(dir + "/*.txt")
	if len(files) < 6 {
		t.Fatalf("found %d questions", len(files))
	}
	for _, path := range files {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		question, want, _ := strings.Cut(string(b), "\n")
		got, err := ask(a, strings.Fields(question))
		if err != nil {
			got = "error: " + err.Error() + "\n"
		}
		if *update {
			if err := os.WriteFile(path, []byte(question+"\n"+got), 0o644); err != nil {
				t.Fatal(err)
			}
		} else if got != want {
			t.Errorf("%s: %s\n got %s\nwant %s", path, question, got, want)
		}
	}
}

func ask(a *Access, words []string) (string, error) {
	if words[0] == "who-can" && IsSecret(words[1]) {
		holders, err := a.WhoHas(words[1])
		return holders.String(), err
	}
	if login, ok := a.Login(words[len(words)-1]); ok && words[0] == "who-can" {
		return a.WhoCanLogIn(login).String(), nil
	}
	if words[0] == "who-can" {
		service, err := a.Service(words[1])
		return a.WhoCan(service).String(), err
	}
	if a.IsStranger(words[1]) {
		var from netip.Addr
		if len(words) > 3 {
			from = netip.MustParseAddr(words[4])
		}
		visit, err := a.Visit(words[2], from)
		if err != nil {
			return "", err
		}
		return visit.String(), nil
	}
	who, err := a.Principal(words[1])
	if err != nil {
		return "", err
	}
	if login, ok := a.Login(words[2]); ok {
		return a.ExplainLogin(who, login).String(), nil
	}
	service, err := a.Service(words[2])
	return a.Explain(who, service).String(), err
}

// TestRemediesAreTrue checks that a remedy opens the way and otherwise exactly the access that it
// names, for each part of a service. If roles have exceptions, it tries only remedies that need no
// new compilation: who has the role.
func TestRemediesAreTrue(t *testing.T) {
	for dir, least := range map[string]int{"testdata": 60, "testdata/parts": 40, "testdata/ports": 100, "testdata/links": 100} {
		a, tried := read(t, dir), 0
		for _, p := range a.Principals() {
			for service := range a.t.Services {
				for _, name := range append([]string{service}, a.partsOf(service)...) {
					tried += tryRemedies(t, a, p, name, dir == "testdata")
				}
			}
		}
		if tried < least {
			t.Errorf("%s: tried only %d remedies", dir, tried)
		}
	}
}

// partsOf returns the names of a service's faces.
func (a *Access) partsOf(service string) (names []string) {
	for _, f := range a.faces(service) {
		if f.ID.Node() == "" && f.Port == "" || a.foreign[service] != "" {
			continue // all of it
		}
		for _, p := range a.pairs([]right{{face: f, service: service}}) {
			names = append(names, p.Service)
		}
	}
	return names
}

func tryRemedies(t *testing.T, a *Access, p Principal, name string, roles bool) (tried int) {
	e := a.Explain(p, name)
	if b, err := json.Marshal(e); err != nil || strings.Contains(string(b), "null") {
		t.Errorf("a list that is not there is none: %s, %v", b, err)
	}
	if e.Allowed {
		return 0
	}
	first, want := a.t, map[right]bool{}
	for _, o := range e.Obstacles {
		first = apply(t, first, o.Remedy)
		a.note(want, o.Remedy.Opens)
	}
	if len(e.Chains) > 0 {
		for _, c := range e.Chains {
			for _, f := range a.faces(name) {
				if slices.Contains(c.faces, f) {
					a.note(want, a.pairs(rights(p.ID, e.of(a), []compile.Face{f})))
				}
			}
		}
		opens(t, a.t, first, want)
		tried++
	}
	for _, r := range e.Remedies {
		if !roles && !strings.HasSuffix(r.Place, ".roles") {
			continue
		}
		want := maps.Clone(want)
		a.note(want, r.Opens)
		if r.Part == nil {
			r.Part = a.faces(name)
		}
		for _, f := range r.Part {
			want[right{p.ID, e.of(a), f}] = true
		}
		opens(t, a.t, apply(t, first, r), want)
		tried++
	}
	return tried
}

func (e Explanation) of(a *Access) string {
	of, _ := a.target(e.Service)
	return of
}

func (a *Access) note(set map[right]bool, pairs []Pair) {
	for _, p := range pairs {
		of, _ := a.target(p.Service)
		for _, f := range a.faces(p.Service) {
			r := right{p.Principal, of, f}
			// The name of the instance that all hosts share is also the name of the whole service.
			if a.t.Services[of].Scope != "both" || !a.reaching()[r] {
				set[r] = true
			}
		}
	}
}

// opens checks that a change opens the wanted access and nothing else.
func opens(t *testing.T, before, after compile.Topology, want map[right]bool) {
	t.Helper()
	had, got := New(before).reaching(), map[right]bool{}
	for r := range New(after).reaching() {
		if !had[r] {
			got[r] = true
		}
	}
	if !maps.Equal(got, want) {
		t.Errorf("got %v\nwant %v", got, want)
	}
}

// reaching returns all pairs of a caller and a service that it reaches.
func (a *Access) reaching() map[right]bool {
	all := map[right]bool{}
	for service := range a.t.Services {
		for _, r := range a.WhoCan(service).Reaching {
			for _, c := range r.Chains {
				for _, f := range c.faces {
					all[right{r.Principal, service, f}] = true
				}
			}
		}
	}
	return all
}

// apply makes the change in a copy of the topology.
func apply(t *testing.T, top compile.Topology, r Remedy) compile.Topology {
	t.Helper()
	b, err := json.Marshal(top)
	if err != nil {
		t.Fatal(err)
	}
	var c compile.Topology
	if err := json.Unmarshal(b, &c); err != nil {
		t.Fatal(err)
	}
	value := strings.Trim(r.Value, `"`)
	part := strings.Split(r.Place, ".")
	if _, known := c.Services[value]; !known && part[0] != "hosts" {
		if service, host, one := strings.Cut(value, "@"); one {
			if c.Parts == nil {
				c.Parts = map[string]compile.Part{}
			}
			c.Parts[value] = compile.Part{Service: service, Hosts: []string{host}}
		}
	}
	switch name := part[1]; part[0] {
	case "users":
		u := c.Users[name]
		u.Roles = append(u.Roles, value)
		c.Users[name] = u
	case "hosts":
		if name == "<host>" {
			u := c.Users[value]
			u.Hosts = append(u.Hosts, "forge")
			c.Users[value] = u
			break
		}
		h := c.Hosts[name]
		h.Roles = append(h.Roles, value)
		c.Hosts[name] = h
	case "services":
		s := c.Services[name]
		if part[2] == "visibility" {
			s.Published = true
		} else {
			s.Roles = append(s.Roles, value)
		}
		c.Services[name] = s
	case "federated", "clusters":
		domain := c.TrustDomain
		if part[0] == "federated" {
			domain = c.Federated[name].TrustDomain
		}
		other := c.Others()[part[0]+"."+name]
		of, kind := other.Identities, ""
		if part[2] == "services" {
			of, kind = other.Services, "service/"
		}
		id, err := spiffe.ParseID("spiffe://" + domain + "/" + kind + strings.Trim(part[3], `"`))
		if err != nil {
			t.Fatal(err)
		}
		of[id] = append(of[id], value)
		for name, role := range c.Roles {
			if part[2] == "services" && slices.Contains(role.Roles, value) {
				of[id] = append(of[id], name)
			}
		}
	case "roles":
		for n, role := range c.Roles {
			if n != name && !slices.Contains(role.Roles, name) {
				continue
			}
			if role.Own != nil && n == name {
				role.Own.Services = append(role.Own.Services, value)
			}
			role.Services = append(role.Services, value)
			c.Roles[n] = role
		}
	case "serviceGroups":
		c.ServiceGroups[name] = append(c.ServiceGroups[name], value)
	default:
		t.Fatalf("place %s", r.Place)
	}
	return c
}

func TestNames(t *testing.T) {
	a := example(t)
	for name, want := range map[string]string{
		"user:alice":                      "user/alice",
		"user/alice":                      "user/alice",
		"spiffe://demo.flor/user/alice":   "user/alice",
		"alice":                           "user/alice",
		"node:forge":                      "node/forge",
		"service:forge/backup":            "service/forge/backup",
		"spiffe://demo.flor/service/wiki": "service/wiki",
		"spiffe://else.flor/user/alice":   "",
		"twin":                            "",
		"user:twin":                       "user/twin",
		"backup":                          "",
		"":                                "",
	} {
		p, err := a.Principal(name)
		if p.ID.Short() != want && (want != "" || p.ID != spiffe.ID{}) || (err == nil) != (want != "") {
			t.Errorf("%q: got %s, %v", name, p.ID, err)
		}
	}
	for _, name := range []string{"backup", "service:backup", "backup@forge", "backup.forge", "service/forge/backup", "spiffe://demo.flor/service/forge/backup"} {
		want := "backup@forge"
		if !strings.Contains(name, "forge") {
			want = "backup"
		}
		if got, err := a.Service(name); got != want {
			t.Errorf("%q: got %q, %v, want %s", name, got, err, want)
		}
	}
	if got, err := a.Service(""); err == nil {
		t.Errorf("no name is that of %q", got)
	}
}

// TestListsAreLists checks that empty lists are encoded as such, never as null.
func TestListsAreLists(t *testing.T) {
	a := example(t)
	for id, p := range a.principals {
		for service := range a.t.Services {
			b, err := json.Marshal(a.Explain(p, service))
			if err != nil || strings.Contains(string(b), "null") {
				t.Errorf("%s, %s: %s, %v", id, service, b, err)
			}
		}
	}
	for service := range a.t.Services {
		if b, err := json.Marshal(a.WhoCan(service)); err != nil || strings.Contains(string(b), "null") {
			t.Errorf("%s: %s, %v", service, b, err)
		}
	}
}

// TestBothNames checks a service with an identity of its own on each host and one that they share:
// its name means the shared one, and the name with a host means that host's.
func TestBothNames(t *testing.T) {
	a := example(t)
	top := a.t
	backup := top.Services["backup"]
	shared, err := spiffe.ParseID("spiffe://demo.flor/service/backup")
	if err != nil {
		t.Fatal(err)
	}
	backup.Scope, backup.IDs = "both", append(backup.IDs, shared)
	top.Services["backup"] = backup
	a = New(top)
	for name, want := range map[string]string{
		"backup":               "service/backup",
		"service/backup":       "service/backup",
		"forge/backup":         "service/forge/backup",
		"backup.forge":         "service/forge/backup",
		"service/shelf/backup": "service/shelf/backup",
		"twin":                 "",
	} {
		p, err := a.Principal(name)
		if p.ID.Short() != want && want != "" || (err == nil) != (want != "") {
			t.Errorf("%q: got %s, %v, want %q", name, p.ID, err, want)
		}
	}
}
