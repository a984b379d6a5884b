package graph

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/nix/operator/compile"
	"github.com/florete/florete/tests/kit"
)

var update = flag.Bool("update", false, "rewrite the golden files")

var formats = map[string]func(Cluster) []byte{"svg": SVG, "dot": DOT, "mmd": Mermaid}

// team returns a cluster of ten hosts.
func team(t *testing.T) Cluster {
	t.Helper()
	b, err := os.ReadFile("testdata/team.json")
	if err != nil {
		t.Fatal(err)
	}
	var c Cluster
	if err := json.Unmarshal(b, &c); err != nil {
		t.Fatal(err)
	}
	c.nodes = len(c.Hosts)
	return c
}

// TestGolden compares pictures with golden files, so that every change is reviewed.
func TestGolden(t *testing.T) {
	whole := team(t)
	part, err := whole.Around("mon")
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]Cluster{"team": whole, "mon": part} {
		for ext, draw := range formats {
			path := filepath.Join("testdata", name+"."+ext)
			got := draw(c)
			for range 3 {
				if !bytes.Equal(draw(c), got) {
					t.Fatalf("%s: drawn again, it is another", path)
				}
			}
			if *update {
				if err := os.WriteFile(path, got, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got, want) {
				t.Errorf("%s: drawn otherwise; look at it, then run with -update", path)
			}
		}
	}
}

func TestNew(t *testing.T) {
	const id, digest = `"spiffe://a.flor/node/a"`, `sha256-`
	body := `{"cluster":"a","host":"a","trustDomain":"a.flor","trust":{"roots":[],"signingKeys":[]},"identity":{"id":` + id + `,"sshHostKey":"k"},"roles":[],` +
		`"providers":{"b":{"cert":{"id":` + id + `,"addresses":["b:1"]}},"c":{"cert":{"id":` + id + `,"addresses":["c:1"]},"oidc":{"id":` + id + `,"addresses":["c:2"]}}},"needs":[` +
		need("cert-node", "cert", `"b","c"`) + "," + need("cert-service-x", "cert", `"b"`) + "," + need("oidc-x", "oidc", `"c"`) +
		`],"forwarder":{"publish":[],"reach":[],"callers":[],"socks":[]}}`
	envelope := fmt.Sprintf(`{"cluster":"a","digest":%q,"format":"1.0","host":"a","kind":"manifest","rev":"","schema":"florete.envelope/v1","serial":1}`, document.Digest([]byte(body)))
	c, err := New(compile.Snapshot{Documents: map[string]map[string]compile.Raw{"a": {"manifest": {Body: body, Envelope: envelope}}}})
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(c.Needs); got != "map[a:map[b:[cert] c:[cert oidc]]]" {
		t.Error(got)
	}
	if _, err := New(compile.Snapshot{Documents: map[string]map[string]compile.Raw{"a": {"manifest": {Body: body + " ", Envelope: envelope}}}}); err == nil {
		t.Error("a changed body is drawn")
	}
}

// TestMarks checks the marks of a large picture for services that hold roles, for strangers, datagrams
// and sessions, and that providers get no lines of their own.
func TestMarks(t *testing.T) {
	long := strings.Repeat("proxy", 6)
	c := Cluster{Topology: compile.Topology{
		Hosts: map[string]compile.Host{"gate": {Services: []string{long}, Roles: []string{"guest"}, Capabilities: []string{"ingress"}, Kinds: []string{"cert"}}},
		Services: map[string]compile.Service{
			long:   {Hosts: []string{"gate"}, Roles: []string{"reader"}, Visibility: "host"},
			"git":  {Hosts: []string{"h9"}, Published: true, Visibility: "public", Protocol: "udp"},
			"irc":  {Hosts: []string{"h9"}, Published: true, Visibility: "public"},
			"blog": {Hosts: []string{"h9"}, Published: true, Visibility: "public", TLSName: "blog.example.org", TLSAliases: []string{"*.blog.example.org"}},
			"time": {Hosts: []string{"h9"}, Published: true, Protocol: "udp", Aliases: []string{"*.time", "ntp"}},
			"desk": {Hosts: []string{"h9"}, Published: true, Protocol: "rdp"},
			"root": {Hosts: []string{"h9"}, Published: true, Protocol: "ssh", Record: document.Record{Recipients: []string{"age1…"}, Days: 90}},
		},
		Roles:         map[string]compile.Role{"reader": {Services: []string{"blog", "git", "time"}}, "guest": {ServiceGroups: []string{"pages"}}},
		ServiceGroups: map[string][]string{"pages": {"git", "irc"}},
	}, Needs: map[string]map[string][]string{"gate": {"gate": {"cert"}}}}
	for i := range 70 {
		c.Hosts[fmt.Sprint("h", i)] = compile.Host{Roles: []string{"guest"}[:btoi(i == 5)], Services: []string{"blog", "desk", "git", "irc", "root", "time"}[:6*btoi(i == 9)]}
	}
	c.nodes = len(c.Hosts)
	drawn := string(SVG(c))
	for _, want := range []string{`class="ring"`, ">strangers → blog, git, irc<", `class="stranger"`, "time · udp · *.time, ntp", "blog · blog.example.org, *.blog.example.org", "git · udp · public", "desk · rdp", "root · ssh, recorded"} {
		if !strings.Contains(drawn, want) {
			t.Errorf("no %s in the picture", want)
		}
	}
	if n := strings.Count(drawn, "strangers →"); n != 1 {
		t.Errorf("strangers come in at %d hosts, one is an ingress", n)
	}
	cut := regexp.MustCompile(`x="(\d+)" y="\d+">(proxy[a-z]*…)<title>(?s:.*?)class="ring" cx="(\d+)"`).FindStringSubmatch(drawn)
	if cut == nil {
		t.Fatal("no name that is cut, with a ring")
	}
	begin, _ := strconv.Atoi(cut[1])
	ring, _ := strconv.Atoi(cut[3])
	if begin+width(cut[2], 12) > ring-6 {
		t.Errorf("%s at %d runs into the ring at %d", cut[2], begin, ring)
	}
	if strings.Contains(drawn, "is provided for by") {
		t.Error("a line to who provides, from nowhere")
	}
	c.Needs["h1"] = map[string][]string{"gate": {"cert"}, "h2": {"cert"}}
	if got := lay(c).lanes; !slices.Equal(got, []string{"gate", "h2"}) {
		t.Errorf("lines to %v", got)
	}
	for name, text := range map[string][]byte{"DOT": DOT(c), "Mermaid": Mermaid(c)} {
		if !strings.Contains(string(text), "strangers") {
			t.Errorf("%s: no strangers", name)
		}
	}
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

func need(id, kind, providers string) string {
	return fmt.Sprintf(`{"id":%q,"kind":%q,"for":"spiffe://demo.flor/node/a","providers":[%s],"request":{},"deliver":{"files":{},"owner":""},"onChange":[],"dependsOn":[],"renew":{},"generation":1}`, id, kind, providers)
}

func TestAroundNobody(t *testing.T) {
	if _, err := team(t).Around("moon"); err == nil || err.Error() != `cluster team has no host "moon", did you mean "mon"?` {
		t.Error(err)
	}
}

// own returns the identities of a service that are specific to hosts.
func own(name string, hosts ...string) (ids []spiffe.ID) {
	for _, h := range hosts {
		ids = append(ids, kit.ID("service/"+h+"/"+name))
	}
	return ids
}

// TestReachesPart checks that a role that leads to one host's identity is connected with that
// alone.
func TestReachesPart(t *testing.T) {
	c := Cluster{Topology: compile.Topology{
		Hosts:    map[string]compile.Host{"a": {Services: []string{"shell"}}, "b": {Services: []string{"shell"}, Roles: []string{"ops"}}},
		Services: map[string]compile.Service{"shell": {IDs: own("shell", "a", "b"), Scope: "node", Hosts: []string{"a", "b"}, Published: true}},
		Parts:    map[string]compile.Part{"shell@a": {Service: "shell", Hosts: []string{"a"}}},
		Roles:    map[string]compile.Role{"ops": {Services: []string{"shell@a"}, Reach: own("shell", "a")}},
	}, nodes: 2}
	if edges := regexp.MustCompile(`"role/ops" -> "service/(.*)"`).FindAllString(string(DOT(c)), -1); len(edges) != 1 || edges[0] != `"role/ops" -> "service/a/shell"` {
		t.Errorf("the role is joined by %q", edges)
	}
	if n := strings.Count(string(SVG(c)), `class="reaches"`); n != 2 { // one is of the legend
		t.Errorf("%d edges of the role", n)
	}
}

// TestAroundOwn checks that host-specific identities of other hosts are drawn where they matter.
func TestAroundOwn(t *testing.T) {
	c := Cluster{Topology: compile.Topology{
		Hosts: map[string]compile.Host{
			"a": {Services: []string{"exporter"}},
			"b": {Services: []string{"exporter", "probe"}},
			"c": {Services: []string{"exporter", "watch"}},
			"d": {Services: []string{"exporter"}},
		},
		Services: map[string]compile.Service{
			"exporter": {IDs: own("exporter", "a", "b", "c", "d"), Scope: "node", Hosts: []string{"a", "b", "c", "d"}, Published: true},
			"probe":    {Scope: "node", Hosts: []string{"b"}, Published: true, Roles: []string{"scrape"}},
			"watch":    {Hosts: []string{"c"}, Published: true, Roles: []string{"scrape"}},
		},
		Roles: map[string]compile.Role{"scrape": {Services: []string{"exporter"}}},
	}, nodes: 4}
	for host, want := range map[string]string{
		"a": "a[exporter] b[probe] c[watch]",
		"d": "b[probe] c[watch] d[exporter]",
		"c": "a[exporter] b[exporter probe] c[exporter watch] d[exporter]",
	} {
		part, err := c.Around(host)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for name, h := range part.Hosts {
			got = append(got, fmt.Sprint(name, h.Services))
		}
		slices.Sort(got)
		if strings.Join(got, " ") != want {
			t.Errorf("around %s: got %s", host, got)
		}
		if on := part.Services["exporter"].Hosts; host == "a" && (len(on) != 1 || on[0] != "a") {
			t.Errorf("around a: exporter is on %v", on)
		}
	}
}

// TestWidest checks that boxes are as wide as their contents, up to a limit.
func TestWidest(t *testing.T) {
	for name, want := range map[string]int{"wiki": 210, strings.Repeat("n", 30): 260, strings.Repeat("n", 63): 420} {
		c := Cluster{Topology: compile.Topology{
			Hosts:    map[string]compile.Host{"a": {Services: []string{name}}},
			Services: map[string]compile.Service{name: {Hosts: []string{"a"}}},
		}, nodes: 1}
		b := lay(c).boxes["a"]
		if b.w != want || (want < 420) == strings.Contains(string(SVG(c)), "…") {
			t.Errorf("%s: a box of %d pixels, want %d", name, b.w, want)
		}
	}
}

// TestEscaped checks that markup in names is escaped.
func TestEscaped(t *testing.T) {
	odd := "a\"]<b>&'\\\n#;--{}"
	c := team(t)
	h := c.Hosts["mon"]
	h.Services, h.Users, h.Kinds = []string{odd}, []string{odd}, []string{odd}
	c.Hosts[odd] = h
	c.Services[odd] = compile.Service{Hosts: []string{odd}, Published: true, Roles: []string{odd}}
	c.Users[odd] = compile.User{Hosts: []string{odd}, Roles: []string{odd}}
	c.Roles[odd] = compile.Role{Services: []string{odd}, ServiceGroups: []string{odd}}
	c.Needs[odd] = map[string][]string{"mon": {odd}}
	texts := wellFormed(t, SVG(c))
	if !slices.ContainsFunc(texts, func(s string) bool { return strings.HasPrefix(s, `a"]<b>&'\`) }) {
		t.Errorf("the name is lost: %q", texts)
	}
	if !strings.Contains(string(DOT(c)), `"a\"]<b>&'\\\n#;--{}"`) {
		t.Error("DOT: the name is not quoted")
	}
	graphviz(t, DOT(c))
	mermaid(t, Mermaid(c))
}

// TestLayout checks that in the picture of any cluster nothing overlaps or is outside, and
// everything has its name.
func TestLayout(t *testing.T) {
	for seed := range uint64(60) {
		c := random(rand.New(rand.NewPCG(seed, 0)), int(seed))
		p := lay(c)
		paper := rect{0, 0, p.w, p.h}
		var boxes []rect
		for _, side := range [][]*frame{p.left, p.right} {
			for i, f := range side {
				for _, g := range side[:i] {
					apart(t, seed, f.rect, g.rect)
				}
				within(t, seed, f.rect, paper)
				for j, b := range f.boxes {
					within(t, seed, b.rect, f.rect)
					for _, other := range f.boxes[:j] {
						apart(t, seed, b.rect, other.rect)
					}
					for k, r := range b.rows {
						within(t, seed, r.rect, b.rect)
						if k > 0 {
							apart(t, seed, r.rect, b.rows[k-1].rect)
						}
					}
					boxes = append(boxes, b.rect)
				}
			}
		}
		for i, r := range p.pills {
			within(t, seed, r.rect, paper)
			for _, b := range boxes {
				apart(t, seed, r.rect, b)
			}
			if i > 0 {
				apart(t, seed, r.rect, p.pills[i-1].rect)
			}
		}
		for _, e := range p.joined {
			if e.y < e.side.y || e.y > e.side.y+e.side.h {
				t.Errorf("seed %d: an edge of %s ends at %d, beside %v", seed, e.role.name, e.y, e.side)
			}
		}
		drawn := SVG(c)
		legible(t, seed, drawn, p.w, p.h)
		if !bytes.Equal(drawn, SVG(c)) {
			t.Errorf("seed %d: drawn again, it is another", seed)
		}
		texts := wellFormed(t, drawn)
		for name := range c.Hosts {
			if !slices.Contains(texts, name) {
				t.Errorf("seed %d: no host %s", seed, name)
			}
		}
		mermaid(t, Mermaid(c))
	}
}

var placed = regexp.MustCompile(`<text class="[a-z]+" x="(\d+)" y="(\d+)">([^<]*)<`)

// legible checks that texts end inside the picture, with letters of five pixels.
func legible(t *testing.T, seed uint64, svg []byte, w, h int) {
	t.Helper()
	found := placed.FindAllSubmatch(svg, -1)
	if len(found) < 9 {
		t.Errorf("seed %d: found %d texts", seed, len(found))
	}
	for _, m := range found {
		x, _ := strconv.Atoi(string(m[1]))
		y, _ := strconv.Atoi(string(m[2]))
		if x+5*len([]rune(string(m[3]))) > w || y > h {
			t.Errorf("seed %d: %q at %d, %d is not in a picture of %d, %d", seed, m[3], x, y, w, h)
		}
	}
}

func within(t *testing.T, seed uint64, in, out rect) {
	t.Helper()
	if in.x < out.x || in.y < out.y || in.x+in.w > out.x+out.w || in.y+in.h > out.y+out.h {
		t.Errorf("seed %d: %v is not in %v", seed, in, out)
	}
}

func apart(t *testing.T, seed uint64, a, b rect) {
	t.Helper()
	if a.x < b.x+b.w && b.x < a.x+a.w && a.y < b.y+b.h && b.y < a.y+a.h {
		t.Errorf("seed %d: %v overlaps %v", seed, a, b)
	}
}

// random returns a random cluster of n hosts.
func random(r *rand.Rand, n int) Cluster {
	c := Cluster{Topology: compile.Topology{
		Name: "random", TrustDomain: "random.flor", Hosts: map[string]compile.Host{}, Services: map[string]compile.Service{},
		Users: map[string]compile.User{}, Roles: map[string]compile.Role{"node": {}}, ServiceGroups: map[string][]string{},
	}, Needs: map[string]map[string][]string{}, nodes: n}
	roles := []string{"node"}
	for i := range r.IntN(25) {
		roles = append(roles, fmt.Sprint("r", i))
		c.Roles[roles[i+1]] = compile.Role{}
	}
	some := func() []string { return []string{roles[r.IntN(len(roles))]} }
	for i := range n {
		name := fmt.Sprint("h", i)
		h := compile.Host{Roles: append(some(), "node"), Group: []string{"", "eu", "eu/fra", "us"}[r.IntN(4)]}
		for j := range r.IntN(6) * r.IntN(2) {
			s := fmt.Sprintf("s%d-%d", i, j)
			h.Services = append(h.Services, s)
			c.Services[s] = compile.Service{Hosts: []string{name}, Published: r.IntN(5) > 0, Roles: some(), Visibility: []string{"cluster", "public"}[r.IntN(2)], Outside: []string{"", "192.0.2.77:631"}[r.IntN(2)]}
			role := roles[r.IntN(len(roles))]
			c.Roles[role] = compile.Role{Services: append(c.Roles[role].Services, s)}
		}
		for j := range r.IntN(4) * r.IntN(2) {
			u := fmt.Sprintf("u%d-%d", i, j)
			h.Users = append(h.Users, u)
			c.Users[u] = compile.User{Hosts: []string{name}, Roles: some()}
		}
		if i < 3 {
			h.Kinds = []string{"cert"}
		}
		c.Needs[name] = map[string][]string{"h0": {"cert"}, fmt.Sprint("h", r.IntN(min(3, n))): {"cert"}}
		c.Hosts[name] = h
	}
	for i := range r.IntN(20) {
		c.Users[fmt.Sprint("idle", i)] = compile.User{Roles: some()}
	}
	return c
}

// wellFormed reads a picture as XML and returns its texts.
func wellFormed(t *testing.T, svg []byte) (texts []string) {
	t.Helper()
	d := xml.NewDecoder(bytes.NewReader(svg))
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return texts
		}
		if err != nil {
			t.Fatal(err)
		}
		if text, ok := token.(xml.CharData); ok {
			texts = append(texts, string(text))
		}
	}
}

func graphviz(t *testing.T, dot []byte) {
	t.Helper()
	if _, err := exec.LookPath("dot"); err != nil {
		t.Log("NOT RUN: no program dot, of Graphviz, to read the graph")
		return
	}
	cmd := exec.Command("dot", "-Tcanon")
	cmd.Stdin = bytes.NewReader(dot)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v: %s\n%s", err, out, dot)
	}
}

func TestGraphvizReadsIt(t *testing.T) { graphviz(t, DOT(team(t))) }

var label = `"[^"<>\n]*"`

var mermaidLine = regexp.MustCompile(`^(flowchart LR|  subgraph n\d+ \[` + label + `\]|  end|    n\d+\(\(node\)\)|    n\d+\[` + label + `\]|    n\d+\(\[` + label + `\]\)|` +
	`  n\d+\{\{` + label + `\}\}|  n\d+ (--o|-->|-\. ` + label + ` \.->) n\d+|  n\d+ --> n\d+>` + label + `\]|  n\d+>"strangers"\] -\. ` + label + ` \.-> n\d+)$`)

// mermaid checks that each line is one of those that we write.
func mermaid(t *testing.T, text []byte) {
	t.Helper()
	for line := range strings.Lines(string(text)) {
		if !mermaidLine.MatchString(strings.TrimSuffix(line, "\n")) {
			t.Errorf("not Mermaid: %q", line)
		}
	}
}
