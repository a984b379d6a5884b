package backup_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/florete/florete/internal/unixtime"
	"github.com/florete/florete/providers/backup"
	"github.com/florete/florete/providers/store"
	"github.com/florete/florete/providers/store/sqlite"
	"github.com/florete/florete/tests/kit/etcdtest"
	"github.com/florete/florete/tests/kit/providertest"
)

func file(t *testing.T) store.Store {
	t.Helper()
	s, err := sqlite.Open(filepath.Join(t.TempDir(), "state.db"), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func put(t *testing.T, s store.Store, keys ...string) {
	t.Helper()
	for _, key := range keys {
		if _, err := s.Commit(t.Context(), store.Txn{Then: []store.Op{store.Put(key, []byte("value of "+key))}}); err != nil {
			t.Fatal(err)
		}
	}
}

func remembers(key string) bool { return strings.HasPrefix(key, "kept/") }

var header = backup.Header{TrustDomain: "demo.flor", Host: "forge", Time: unixtime.Of(time.Unix(1784011430, 0).UTC())}

func taken(t *testing.T, stores map[string]store.Store, kinds ...string) string {
	t.Helper()
	var sources []backup.Source
	for _, kind := range kinds {
		sources = append(sources, backup.Source{Kind: kind, Store: stores[kind], Remembers: remembers})
	}
	var out bytes.Buffer
	if _, err := backup.Write(t.Context(), &out, header, sources); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// values returns the content of a store, without one key.
func values(t *testing.T, s store.Store) map[string]string {
	t.Helper()
	entries, _, err := s.List(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, e := range entries {
		all[e.Key] = string(e.Value)
	}
	return all
}

// TestFormat checks that the format is documented, and that a restored state equals the former one.
func TestFormat(t *testing.T) {
	a, b := file(t), file(t)
	put(t, a, "kept/1", "other", "kept/2")
	text := taken(t, map[string]store.Store{"cert": a, "oidc": b}, "cert", "oidc")
	const want = `{"format":"florete.state/v1","trustDomain":"demo.flor","host":"forge","time":1784011430}
{"kind":"cert","revision":4}
{"key":"kept/1","value":"dmFsdWUgb2Yga2VwdC8x"}
{"key":"kept/2","value":"dmFsdWUgb2Yga2VwdC8y"}
{"kind":"oidc","revision":1}
{"entries":2,"digest":"sha256-`
	if !strings.HasPrefix(text, want) || strings.Count(text, "\n") != 6 {
		t.Errorf("got %s", text)
	}
	back, err := backup.Read(strings.NewReader(text))
	if err != nil || back.Host != "forge" || back.Entries != 2 || len(back.Sections) != 2 {
		t.Fatalf("got %+v, %v", back, err)
	}
	to := file(t)
	n, stay, err := backup.Restoring{Remembers: remembers}.Restore(t.Context(), to, back.Keys("cert"))
	if err != nil || n != 2 || stay != 0 {
		t.Errorf("%d put, %d stay, %v", n, stay, err)
	}
	if got := values(t, to); len(got) != 2 || got["kept/2"] != "value of kept/2" {
		t.Errorf("got %v", got)
	}
}

// TestRefused checks that an incomplete or changed backup is refused.
func TestRefused(t *testing.T) {
	s := file(t)
	put(t, s, "kept/1", "kept/2", "kept/3")
	text := taken(t, map[string]store.Store{"cert": s}, "cert")
	lines := strings.SplitAfter(text, "\n")
	for name, c := range map[string]struct{ text, want string }{
		"empty":         {"", "no backup of a provider's state"},
		"another file":  {"PK\x03\x04", "no backup of a provider's state"},
		"another form":  {strings.Replace(text, "state/v1", "state/v2", 1), "of format florete.state/v1"},
		"a line less":   {strings.Replace(text, lines[3], "", 1), "edited or damaged: 2 entries"},
		"a line twice":  {strings.Replace(text, lines[3], lines[3]+lines[3], 1), "line 5: edited or damaged"},
		"another value": {strings.Replace(text, "dmFs", "ZmFs", 1), "edited or damaged: 3 entries"},
		"another host":  {strings.Replace(text, "forge", "anvil", 1), "edited or damaged"},
		"other order":   {strings.Replace(text, lines[2]+lines[3], lines[3]+lines[2], 1), "line 4: edited or damaged"},
		"a kind twice":  {strings.Replace(text, lines[4], lines[1], 1), "line 5: edited or damaged"},
		"another field": {strings.Replace(text, `"key":"kept/3"`, `"key":"kept/3","more":1`, 1), "line 5: edited or damaged"},
		"more after it": {text + lines[2], "comes after the end"},
		"half a line":   {text + "{", "comes after the end"},
	} {
		if _, err := backup.Read(strings.NewReader(c.text)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %s", name, err, c.want)
		}
	}
	for n := 1; n < len(text); n++ {
		if _, err := backup.Read(strings.NewReader(text[:n])); err == nil {
			t.Fatalf("cut off after %d of %d bytes it is taken for whole", n, len(text))
		}
	}
}

// TestEngines checks that a backup of one engine is restored into another, at one revision, and
// that existing entries stay, even if the restore is killed at any moment.
func TestEngines(t *testing.T) {
	c := etcdtest.Start(t, 1)
	for name, open := range map[string]func() (from, to store.Store){
		"file to etcd": func() (store.Store, store.Store) { return file(t), c.Open(t) },
		"etcd to file": func() (store.Store, store.Store) { return c.Open(t), file(t) },
	} {
		t.Run(name, func(t *testing.T) {
			from, into := open()
			var ops []store.Op
			const keys = 450
			for i := range keys {
				ops = append(ops, store.Put(fmt.Sprintf("kept/%04d", i), []byte("old")))
			}
			for len(ops) > 0 {
				n := min(len(ops), store.MaxOps)
				if _, err := from.Commit(t.Context(), store.Txn{Then: ops[:n]}); err != nil {
					t.Fatal(err)
				}
				ops = ops[n:]
			}
			text := taken(t, map[string]store.Store{"cert": from}, "cert")
			put(t, into, "kept/0407", "kept/0433")
			to := &providertest.Faulty{Store: into}
			back, err := backup.Read(strings.NewReader(text))
			if err != nil {
				t.Fatal(err)
			}
			killed := errors.New("killed")
			for i := range 2 { // before and after a transaction
				if i%2 == 0 {
					to.Fail(killed)
				} else {
					to.Lose(killed)
				}
				if _, _, err := (backup.Restoring{Remembers: remembers}).Restore(t.Context(), to, back.Keys("cert")); !errors.Is(err, killed) {
					t.Fatalf("got %v", err)
				}
			}
			ctx, cancel := context.WithCancel(t.Context())
			to.Meanwhile(cancel)
			if _, _, err := (backup.Restoring{Remembers: remembers}).Restore(ctx, to, back.Keys("cert")); err == nil {
				t.Error("it was not interrupted")
			}
			if _, _, err := (backup.Restoring{Remembers: remembers}).Restore(t.Context(), to, back.Keys("cert")); err != nil {
				t.Fatal(err)
			}
			got := values(t, into)
			if len(got) != keys || got["kept/0407"] != "value of kept/0407" || got["kept/0433"] != "value of kept/0433" || got["kept/0449"] != "old" {
				t.Errorf("%d keys, %q", len(got), got["kept/0407"])
			}
			n, stay, err := backup.Restoring{Remembers: remembers}.Restore(t.Context(), into, back.Keys("cert"))
			if err != nil || n != 0 || stay != keys {
				t.Errorf("once more: %d put, %d stay, %v", n, stay, err)
			}
			fenced := backup.Restoring{Remembers: remembers, If: []store.Cond{{Key: "gone", Modified: 1}}}
			if _, err := into.Commit(t.Context(), store.Txn{Then: []store.Op{store.Delete("kept/0001")}}); err != nil {
				t.Fatal(err)
			}
			if _, _, err := fenced.Restore(t.Context(), into, back.Keys("cert")); err == nil {
				t.Error("put without its condition")
			}
		})
	}
}

// FuzzRead checks that only a backup that was written is read as complete.
func FuzzRead(f *testing.F) {
	f.Add([]byte(`{"format":"florete.state/v1","trustDomain":"demo.flor","host":"forge","time":1784011430}
{"kind":"cert","revision":4}
{"key":"kept/1","value":"dmFs"}
{"entries":1,"digest":"sha256-"}
`), 3)
	f.Fuzz(func(t *testing.T, text []byte, at int) {
		b, err := backup.Read(bytes.NewReader(text))
		if err != nil {
			return
		}
		n := 0
		for _, s := range b.Sections {
			for _, err := range b.Keys(s.Kind) {
				if err != nil {
					t.Fatal(err)
				}
				n++
			}
		}
		if n != b.Entries {
			t.Errorf("%d entries, %d read", b.Entries, n)
		}
		if len(text) > 0 {
			changed := bytes.Clone(text)
			changed[rand.IntN(len(changed))] ^= 1
			if other, err := backup.Read(bytes.NewReader(changed)); err == nil && other.Digest == b.Digest {
				t.Error("changed, and the same")
			}
		}
	})
}
