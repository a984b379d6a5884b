package published

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/signers"
	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/internal/terminal"
	"github.com/florete/florete/internal/trust"
	"github.com/florete/florete/nix/operator/client"
	"github.com/florete/florete/nix/operator/compile"
	"github.com/florete/florete/nix/operator/revocation"
	"github.com/florete/florete/providers/archive"
	"github.com/florete/florete/providers/control"
	"github.com/florete/florete/tests/kit"
)

// liar is a config provider that answers with anything that was ever signed: each version and list
// that it received, whole or in part, under any name.
type liar struct {
	r        *rand.Rand // nil for one that answers with the first version, whole
	versions []archive.SignedTree
	lists    []trust.SignedRevocations
}

// serve returns the provider as operators call it.
func (l *liar) serve(t *testing.T) client.Providers {
	t.Helper()
	mux := http.NewServeMux()
	answer := func(pattern string, with func(*http.Request) any) {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) { _ = json.NewEncoder(w).Encode(with(r)) })
	}
	mux.HandleFunc("GET /v1/versions/{serial}", func(w http.ResponseWriter, _ *http.Request) { _ = l.tree().Encode(w) })
	answer("GET /v1/versions", func(*http.Request) any {
		var all control.Versions
		for range 1 + l.r.IntN(3) {
			head := l.versions[l.r.IntN(len(l.versions))].Head()
			head.Serial += l.r.Int64N(3) - 1
			all.Versions = append(all.Versions, archive.Version{Head: head, Rev: "anything"})
		}
		return all
	})
	answer("GET /v1/revocations", func(*http.Request) any {
		var r archive.Revocations
		if n := l.r.IntN(len(l.lists) + 1); n < len(l.lists) {
			r.Signed, r.Number = l.lists[n], 1
		}
		return r
	})
	answer("POST /v1/revocations", func(r *http.Request) any {
		var s trust.SignedRevocations
		if err := json.NewDecoder(r.Body).Decode(&s); err != nil {
			t.Error(err)
		}
		l.lists = append(l.lists, s)
		return archive.Revocations{}
	})
	answer("GET /v1/hosts", func(*http.Request) any { return control.Hosts{} })
	api := httptest.NewServer(mux)
	t.Cleanup(api.Close)
	return client.Providers{client.New("liar", api.URL, api.Client())}
}

func (l *liar) tree() archive.SignedTree {
	if l.r == nil {
		return l.versions[0]
	}
	tree := archive.SignedTree{}
	for host, documents := range l.versions[l.r.IntN(len(l.versions))] {
		if l.r.IntN(4) > 0 {
			tree[host] = documents
		}
	}
	return tree
}

// TestLiar checks that whatever a provider answers, operators sign only documents of the version
// that the operator named or published last, and lists that revoke everything that the operator
// revoked and did not reinstate.
func TestLiar(t *testing.T) {
	key := kit.SigningKey("demo-1")
	pinned := []string{key.ToPublicKey().String()}
	now := time.Now()
	// of returns the documents of a version, whose hosts say which one it is.
	of := func(n int) map[string][]document.Document {
		all := map[string][]document.Document{}
		for _, host := range []string{"a", "b", "p"} {
			m := document.Manifest{Cluster: "demo", Host: host, TrustDomain: fmt.Sprintf("v%d.flor", n), Identity: document.Identity{ID: kit.ID("node/" + host)}, Providers: map[string]map[string]document.Provider{}, Trust: document.Trust{SigningKeys: pinned}}
			all[host] = append(all[host], kit.Document(now.Unix()-int64(1000-10*n), m))
		}
		p := document.Policy{Cluster: "demo", Host: "p", TrustDomain: kit.Domain, Provider: map[string]document.Listening{}, Kinds: map[string]json.RawMessage{}, Rollout: &document.Rollout{}}
		all["p"] = append(all["p"], kit.Document(now.Unix()-int64(1000-10*n), p))
		return all
	}
	content := func(tree map[string][]document.Document) string {
		if len(tree) != 3 {
			return fmt.Sprintf("%d hosts", len(tree))
		}
		return tree["a"][0].Manifest().TrustDomain + tree["b"][0].Manifest().TrustDomain
	}
	signed, refused := 0, 0
	for seed := range uint64(60) {
		l := &liar{r: rand.New(rand.NewPCG(seed, 1))}
		c := Cluster{Topology: compile.Topology{Name: "demo"}, Providers: l.serve(t)}
		c.Topology.Trust.SigningKeys = pinned
		c.Topology.Providers = map[string]compile.Provider{"config": {Hosts: []string{"p"}}}
		r, err := openRecord(filepath.Join(t.TempDir(), "signing.key.signed"), "demo")
		if err != nil {
			t.Fatal(err)
		}
		c.Console = terminal.Console{In: strings.NewReader(""), Err: io.Discard} // nobody confirms
		revoked := map[spiffe.ID]bool{}
		wayBack := "" // of the version before, which may have gone back
		for n := range 8 {
			next := of(n)
			tree, err := archive.Sign(next, key, now)
			if err != nil {
				t.Fatal(err)
			}
			if n > 0 {
				last, err := c.newest(t.Context(), r)
				if err != nil {
					t.Fatal(err)
				}
				by, err := Key{SecretKey: key}.begin("demo", actPublish, signers.Any(pinned...))
				if err != nil {
					t.Fatal(err)
				}
				follow, err := c.former(t.Context(), r, next, last.Serial, "", by)
				if err != nil {
					refused++
				}
				for _, back := range follow {
					if back.Head().Hosts < 3 {
						continue // policies for the time of it
					}
					signed++
					got, want := content(back), fmt.Sprintf("v%d.florv%[1]d.flor", n-1)
					if got != want && got != wayBack {
						t.Fatalf("seed %d: version %d goes back to %s, want %s", seed, n, got, want)
					}
					wayBack, l.versions = got, append(l.versions, back)
				}
				serial := of(l.r.IntN(n))["a"][0].Envelope.Serial
				again, _, err := c.again(t.Context(), r, serial, now.Unix(), "")
				if err != nil {
					refused++
				} else if want := fmt.Sprintf("v%d.flor", (serial-now.Unix()+1000)/10); content(again) != want+want {
					t.Fatalf("seed %d: rollback to %s has %s", seed, want, content(again))
				}
			}
			l.versions = append(l.versions, tree)
			if err := r.add(version{Serial: tree.Head().Serial, Digest: tree.Digest(), Served: true}); err != nil {
				t.Fatal(err)
			}

			if len(l.lists) > 0 && l.r.IntN(2) == 0 { // another operator was lied to
				list, err := l.lists[l.r.IntN(len(l.lists))].Open()
				for range 10 {
					var s trust.SignedRevocations
					if err == nil {
						s, err = revocation.Sign(revocation.Next(list, "demo", now, time.Hour), key)
					}
					if err == nil {
						list, err = s.Open()
					}
				}
				if err != nil {
					t.Fatal(err)
				}
				l.lists = append(l.lists, list.AsSigned())
			}
			id := kit.ID(fmt.Sprintf("user/u%d", l.r.IntN(4)))
			by, err := Key{SecretKey: key}.begin("demo", actRevoke, signers.Any(pinned...))
			if err != nil {
				t.Fatal(err)
			}
			list, s, err := c.next(t.Context(), by, r, time.Hour, false, func(list *trust.Revocations) error {
				if l.r.IntN(3) == 0 {
					if err := revocation.Reinstate(list, revocation.Target{ID: id}); err == nil {
						delete(revoked, id)
					}
					return nil
				}
				revocation.Revoke(list, revocation.Target{ID: id})
				revoked[id] = true
				return nil
			})
			if err == nil {
				err = c.put(t.Context(), r, s)
			}
			if err != nil {
				t.Fatal(err)
			}
			if s, err = revocation.Sign(list, key); err != nil {
				t.Fatal(err)
			}
			if list, err = s.Open(); err != nil {
				t.Fatal(err)
			}
			for id := range revoked {
				if list.CheckID(id) == nil {
					t.Fatalf("seed %d: list %d does not revoke %s", seed, list.Number, id)
				}
			}
		}
	}
	if signed < 5 || refused < 100 {
		t.Errorf("%d ways back were signed and %d answers refused, want more of both", signed, refused)
	}
}

// TestAgain checks that a version that was published elsewhere is signed again if an operator gives
// its digest, or confirms it.
func TestAgain(t *testing.T) {
	key := kit.SigningKey("demo-1")
	m := document.Manifest{Cluster: "demo", Host: "a", TrustDomain: kit.Domain, Identity: document.Identity{ID: kit.ID("node/a")}, Providers: map[string]map[string]document.Provider{}}
	tree, err := archive.Sign(map[string][]document.Document{"a": {kit.Document(7, m)}}, key, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	l := &liar{versions: []archive.SignedTree{tree}}
	for name, x := range map[string]struct{ digest, answer, want string }{
		"its digest":     {digest: tree.Digest()},
		"another digest": {digest: "sha256-x", want: "want sha256-x: nothing is signed"},
		"confirmed":      {answer: "y\n"},
		"not confirmed":  {answer: "\n", want: "nothing is signed: --digest sha256-"},
	} {
		c := Cluster{Topology: compile.Topology{Name: "demo"}, Providers: l.serve(t)}
		c.Topology.Trust.SigningKeys = []string{key.ToPublicKey().String()}
		r, err := openRecord(filepath.Join(t.TempDir(), "signing.key.signed"), "demo")
		if err != nil {
			t.Fatal(err)
		}
		var asked bytes.Buffer
		c.Console = terminal.Console{In: strings.NewReader(x.answer), Err: &asked}
		if _, _, err := c.again(t.Context(), r, 7, 8, x.digest); (err == nil) != (x.want == "") || err != nil && !strings.Contains(err.Error(), x.want) {
			t.Errorf("%s: %v, want %q", name, err, x.want)
		}
		if _, _, err := c.again(t.Context(), r, 9, 10, tree.Digest()); err == nil || !strings.Contains(err.Error(), "answers with version 7") {
			t.Errorf("%s: another serial: %v", name, err)
		}
		if x.digest == "" && !strings.Contains(asked.String(), tree.Digest()) {
			t.Errorf("%s: asked %q", name, asked.String())
		}
	}
}
