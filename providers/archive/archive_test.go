package archive_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nix-community/go-nix/pkg/narinfo/signature"

	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/internal/signers"
	"github.com/florete/florete/providers/archive"
	"github.com/florete/florete/providers/store"
	"github.com/florete/florete/providers/store/sqlite"
	"github.com/florete/florete/tests/kit"
	"github.com/florete/florete/tests/kit/providertest"
)

// shop is an archive, and whose documents are in it.
type shop struct {
	t *testing.T
	archive.Archive
	key signature.SecretKey
}

func newShop(t *testing.T) *shop {
	t.Helper()
	db, err := sqlite.Open(filepath.Join(t.TempDir(), "state.db"), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return &shop{t, archive.Archive{Store: db}, kit.SigningKey("demo-1")}
}

func (s *shop) keys() signers.Set { return signers.Any(s.key.ToPublicKey().String()) }

func (s *shop) tree(serial int64, note string, hosts ...string) archive.SignedTree {
	return providertest.Tree(s.key, serial, note, hosts...)
}

// publish imports a tree, and keeps three.
func (s *shop) publish(tree archive.SignedTree) bool {
	s.t.Helper()
	v, changed, err := s.Import(s.t.Context(), providertest.Stream(tree), archive.Terms{Signers: s.keys(), Keep: 3})
	if err != nil {
		s.t.Fatal(err)
	}
	if newest, err := s.Newest(s.t.Context()); err != nil || newest.Digest != v.Digest || newest.Tree != v.Tree {
		s.t.Fatalf("imported %+v, newest %+v, %v", v, newest, err)
	}
	return changed
}

// want checks that exactly this tree is served.
func (s *shop) want(tree archive.SignedTree) {
	s.t.Helper()
	for host, documents := range tree {
		got, _, err := s.Documents(s.t.Context(), host, "")
		if err != nil {
			s.t.Fatal(err)
		}
		envelope, body, signature := documents[0].Bytes()
		if len(got) != 1 || got[0].Envelope != string(envelope) || got[0].Body != string(body) || got[0].Signature != signature {
			s.t.Fatalf("%s: got %+v", host, got)
		}
	}
	var want, got bytes.Buffer
	if err := errors.Join(tree.Encode(&want), s.Export(s.t.Context(), tree.Head().Serial, &got)); err != nil {
		s.t.Fatal(err)
	}
	if want.String() != got.String() {
		s.t.Fatal("what is exported is not what was imported")
	}
}

// keysIn returns all keys of the archive.
func (s *shop) keysIn() (keys []string) {
	s.t.Helper()
	entries, _, err := s.List(s.t.Context(), "config/")
	if err != nil {
		s.t.Fatal(err)
	}
	for _, e := range entries {
		keys = append(keys, e.Key)
	}
	return keys
}

// slow is a reader that pauses for longer than an import that died holds the archive.
type slow struct{ io.Reader }

func (r slow) Read(b []byte) (int, error) {
	time.Sleep(time.Minute)
	return r.Reader.Read(b)
}

// TestSlowImport checks that during an import, however slow, nobody else can import.
func TestSlowImport(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShop(t)
		var b bytes.Buffer
		tree := s.tree(1, digits(20_000), many(3)...)
		if err := tree.Encode(&b); err != nil {
			t.Fatal(err)
		}
		r, err := archive.NewStreamReader(slow{&b})
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := s.Import(t.Context(), r, archive.Terms{Signers: s.keys(), Keep: 3}); err != nil {
			t.Fatal(err)
		}
		s.want(tree)
	})
}

func serials(t *testing.T, a archive.Archive) (all []int64) {
	t.Helper()
	versions, err := a.Versions(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range versions {
		all = append(all, v.Serial)
	}
	return all
}

func many(n int) (hosts []string) {
	for i := range n {
		hosts = append(hosts, fmt.Sprintf("host%05d", i))
	}
	return hosts
}

func TestVersions(t *testing.T) {
	s := newShop(t)
	if _, err := s.Newest(t.Context()); !errors.Is(err, archive.ErrNone) {
		t.Fatal(err)
	}
	hosts := many(100)
	for serial := range int64(5) {
		tree := s.tree(10+serial, "the same", hosts...)
		if !s.publish(tree) || s.publish(tree) {
			t.Error("a new version changes something, the same again nothing")
		}
		s.want(tree)
	}
	if got := serials(t, s.Archive); !slices.Equal(got, []int64{14, 13, 12}) {
		t.Errorf("kept %v", got)
	}
	// Bodies are shared: 100, beside three versions with seven buckets each.
	if n := len(s.keysIn()); n != 100+3+3*7 {
		t.Errorf("%d keys", n)
	}
	s.publish(s.tree(20, "another", hosts[0]))
	s.publish(s.tree(21, "another", hosts[0]))
	s.publish(s.tree(22, "another", hosts[0]))
	if keys := s.keysIn(); len(keys) != 1+3+3 {
		t.Errorf("what no version has is still there: %q", keys)
	}
	if got, _, err := s.Documents(t.Context(), hosts[1], ""); err != nil || got != nil {
		t.Errorf("of a host that left: %v, %v", got, err)
	}
	if err := s.Export(t.Context(), 10, new(bytes.Buffer)); err == nil || !strings.Contains(err.Error(), "with serial 10: florctl versions") {
		t.Errorf("a version that went: %v", err)
	}
}

// bounded is a store that permits no transaction beyond its size.
type bounded struct {
	store.Store
	t *testing.T
}

func (b bounded) Commit(ctx context.Context, txn store.Txn) (int64, error) {
	size := 0
	for _, op := range txn.Then {
		size += len(op.Value)
	}
	if size > store.MaxBytes {
		b.t.Errorf("a transaction of %d bytes", size)
	}
	return b.Store.Commit(ctx, txn)
}

// TestLongBody checks that a body that is longer than a transaction permits is imported in several
// transactions.
func TestLongBody(t *testing.T) {
	s := newShop(t)
	s.Store = bounded{s.Store, t}
	tree := s.tree(1, digits(60_000), "a", "b")
	s.publish(tree)
	s.want(tree)
	entries, _, err := s.List(t.Context(), "config/")
	if err != nil || len(entries) < 6 {
		t.Fatalf("%d keys, %v", len(entries), err)
	}
	for _, e := range entries {
		if len(e.Value) > 64<<10 {
			t.Errorf("%s has %d bytes", e.Key, len(e.Value))
		}
	}
	t.Log("what an import that failed left behind it is none of it")
	body := entries[slices.IndexFunc(entries, func(e store.Entry) bool { return strings.HasSuffix(e.Key, "/0001") })].Key
	if _, err := s.Commit(t.Context(), store.Txn{Then: []store.Op{store.Put(strings.TrimSuffix(body, "0001")+"00ff", []byte("left"))}}); err != nil {
		t.Fatal(err)
	}
	s.want(tree)
}

// TestSameBodies checks that bodies that the previous version has are not written again.
func TestSameBodies(t *testing.T) {
	s := newShop(t)
	bodies := func() []store.Entry {
		t.Helper()
		entries, _, err := s.List(t.Context(), "config/body/")
		if err != nil || len(entries) != 40 {
			t.Fatalf("%d bodies, %v", len(entries), err)
		}
		return entries
	}
	s.publish(s.tree(1, "same", many(40)...))
	before := bodies()
	s.publish(s.tree(2, "same", many(40)...))
	for i, e := range bodies() {
		if e.Modified != before[i].Modified {
			t.Errorf("%s is written again", e.Key)
		}
	}
}

// TestSignedAnew checks that signatures are replaced if the same documents are signed by another
// key.
func TestSignedAnew(t *testing.T) {
	s := newShop(t)
	s.publish(s.tree(1, "a", "ursula"))
	s.key = kit.SigningKey("demo-1")
	again := s.tree(1, "a", "ursula")
	if !s.publish(again) {
		t.Error("nothing changed")
	}
	s.want(again)
	if got := serials(t, s.Archive); len(got) != 1 {
		t.Errorf("versions %v", got)
	}
}

func TestTag(t *testing.T) {
	s := newShop(t)
	if _, same, err := s.Documents(t.Context(), "ursula", "x"); same || !errors.Is(err, archive.ErrNone) {
		t.Error(err)
	}
	tree := s.tree(1, "a", "ursula", "raishan")
	s.publish(tree)
	stream := providertest.Stream(tree)
	for h, err := range stream.All(s.keys()) {
		if err != nil {
			t.Fatal(err)
		}
		tag := hostapi.Artifact{Documents: h.Documents}.Tag()
		if got, same, err := s.Documents(t.Context(), h.Name, tag); err != nil || !same || got != nil {
			t.Errorf("%s, with its tag: %v, %t, %v", h.Name, got, same, err)
		}
		if got, same, err := s.Documents(t.Context(), h.Name, "x"+tag); err != nil || same || len(got) != len(h.Documents) {
			t.Errorf("%s, with another tag: %v, %t, %v", h.Name, got, same, err)
		}
	}
}

func TestRefused(t *testing.T) {
	s := newShop(t)
	served := s.tree(10, "a", "ursula", "raishan")
	s.publish(served)
	before := s.keysIn()
	for name, c := range map[string]struct {
		tree archive.SignedTree
		want string
	}{
		"older":         {s.tree(9, "b", "ursula"), "serial 10 is served, this is 9: commit anew, hosts never go back"},
		"another":       {s.tree(10, "b", "ursula", "raishan"), "other documents with the same serial 10 are served"},
		"fewer hosts":   {s.tree(10, "a", "ursula"), "other documents with the same serial 10 are served"},
		"of the past":   {s.tree(-1, "a", "ursula"), "serial -1, want the time of a commit"},
		"unsigned by a": {providertest.Tree(kit.SigningKey("demo-1"), 11, "b", "ursula"), "does not verify with any pinned key"},
	} {
		_, _, err := s.Import(t.Context(), providertest.Stream(c.tree), archive.Terms{Signers: s.keys(), Keep: 3})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want …%s…", name, err, c.want)
		}
		if after := s.keysIn(); !slices.Equal(before, after) {
			t.Errorf("%s: left %q", name, after)
		}
	}
	s.want(served)
}

// dying is a store whose process dies after so many commits.
type dying struct {
	store.Store
	left int
}

var errDead = errors.New("killed")

func (d *dying) Commit(ctx context.Context, txn store.Txn) (int64, error) {
	if d.left--; d.left < 0 {
		return 0, errDead
	}
	return d.Store.Commit(ctx, txn)
}

func (d *dying) Revoke(ctx context.Context, id store.LeaseID) error {
	if d.left < 0 {
		return errDead
	}
	return d.Store.Revoke(ctx, id)
}

// TestKilled checks that after an import is killed at any moment, the previous or the new version
// is served completely, and that the next import removes all remains.
func TestKilled(t *testing.T) {
	clean := 0 // keys of an archive that has the last tree alone
	key, hosts, long := kit.SigningKey("demo-1"), many(40), digits(90_000)
	tree := func(serial int64, note string) archive.SignedTree {
		all := providertest.Tree(key, serial, note, hosts...)
		maps.Copy(all, providertest.Tree(key, serial, note+long, "long"))
		return all
	}
	old, next, last := tree(1, "old"), tree(2, "next"), tree(3, "next")
	for left, done := 0, false; !done; left++ {
		s := newShop(t)
		s.key = key
		s.publish(old)
		d := &dying{s.Store, left}
		_, _, err := archive.Archive{Store: d}.Import(t.Context(), providertest.Stream(next), archive.Terms{Signers: s.keys(), Keep: 1})
		done = err == nil
		if !done && !errors.Is(err, errDead) {
			t.Fatal(err)
		}
		v, err := s.Newest(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		s.want(map[int64]archive.SignedTree{1: old, 2: next}[v.Serial])
		if done && left < 5 {
			t.Fatalf("an import of %d commits shows little", left)
		}
		s.expire()
		if _, _, err := s.Import(t.Context(), providertest.Stream(last), archive.Terms{Signers: s.keys(), Keep: 1}); err != nil {
			t.Fatal(err)
		}
		s.want(last)
		if clean == 0 {
			clean = s.fresh(last)
		}
		if n := len(s.keysIn()); n != clean {
			t.Fatalf("after %d commits %d keys are left, want %d", left, n, clean)
		}
	}
}

// fresh returns the number of keys that a tree takes.
func (s *shop) fresh(tree archive.SignedTree) int {
	other := newShop(s.t)
	other.key = s.key
	other.publish(tree)
	return len(other.keysIn())
}

// digits compress badly.
func digits(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "%x", i*i*7919)
	}
	return b.String()
}

// expire ends the lease of an import that died.
func (s *shop) expire() {
	for id := range store.LeaseID(8) {
		if err := s.Revoke(s.t.Context(), id); err != nil && !errors.Is(err, store.ErrNotFound) {
			s.t.Fatal(err)
		}
	}
}

// TestReadsWhileReplaced checks that a reader gets one complete version while versions are
// replaced.
func TestReadsWhileReplaced(t *testing.T) {
	s := newShop(t)
	trees := map[string]archive.SignedTree{}
	for i := range 12 {
		note := fmt.Sprint(i)
		trees[note] = s.tree(int64(i+1), note, "ursula")
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for i := range 12 {
			_, _, err := s.Import(t.Context(), providertest.Stream(trees[fmt.Sprint(i)]), archive.Terms{Signers: s.keys(), Keep: 1})
			if err != nil {
				t.Error(err)
				return
			}
		}
	}()
	seen := map[string]bool{}
	for {
		got, _, err := s.Documents(t.Context(), "ursula", "")
		if err == nil && len(got) == 1 {
			seen[got[0].Envelope] = true
		} else if !errors.Is(err, archive.ErrNone) {
			t.Errorf("got %v, %v", got, err)
			<-ended
			return
		}
		select {
		case <-ended:
			if len(seen) < 2 {
				t.Errorf("saw %d versions", len(seen))
			}
			return
		default:
		}
	}
}

func TestPrint(t *testing.T) {
	s := newShop(t)
	s.publish(s.tree(10, "a", "ursula"))
	s.publish(s.tree(11, "b", "ursula"))
	s.publish(s.tree(12, "a", "ursula"))
	all, err := s.Versions(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	if err := archive.Print(&b, all); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(b.String(), "\n")
	if len(lines) != 5 || !strings.HasPrefix(lines[1], "12      1970-01-01T00:00:12Z  ") || !strings.Contains(lines[1], "  8eeec93  ") ||
		!strings.HasSuffix(lines[1], "demo-1     the same documents as 10") || strings.Contains(lines[2], "same") {
		t.Errorf("%q", lines)
	}
}
