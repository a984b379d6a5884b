package fetch_test

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/florete/florete/activation/devicekey"
	"github.com/florete/florete/activation/fetch"
	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/internal/hostdir"
	"github.com/florete/florete/internal/hostreport"
	"github.com/florete/florete/tests/kit"
)

// TestBeginJoin checks that there is one device key, whoever begins to join and however often, and
// that a refused beginning leaves nothing on disk.
func TestBeginJoin(t *testing.T) {
	token, err := hostapi.NewJoinToken("drhorrible")
	if err != nil {
		t.Fatal(err)
	}
	joins := document.Manifest{
		Host: "elm", Identity: document.Identity{ID: kit.ID("node/elm"), Joins: true},
		Providers: map[string]map[string]document.Provider{"drhorrible": {document.KindConfig: {ID: kit.ProviderID("drhorrible", "config")}}},
	}
	declared, elsewhere := joins, joins
	declared.Identity = document.Identity{ID: kit.ID("node/elm"), SSHHostKey: "ssh-ed25519 AAAA"}
	elsewhere.Providers = nil
	state := hostdir.Layout(filepath.Join(t.TempDir(), "state"))
	begin := func(m document.Manifest, token string) error {
		h := &fetch.Host{Layout: state, Manifest: m, TPM: devicekey.None}
		return h.BeginJoin(token, hostreport.Facts{})
	}
	for _, c := range []struct {
		manifest    document.Manifest
		token, want string
	}{
		{declared, token.String(), "declares its SSH host key"},
		{elsewhere, token.String(), `of provider "drhorrible", which the manifest of elm does not have`},
		{joins, token.String()[:40], "cut short or changed"},
		{joins, "florete", "want what florctl join token create prints"},
	} {
		if err := begin(c.manifest, c.token); err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), token.String()[30:]) {
			t.Errorf("got %v, want %q", err, c.want)
		}
	}
	if _, err := os.Stat(string(state)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("something is on disk: %v", err)
	}
	if err := begin(joins, token.String()+"\n"); err != nil {
		t.Fatal(err)
	}
	key := kit.ReadFile(state.DeviceKey())
	if err := os.Remove(state.DeviceKey()); err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			if err := begin(joins, token.String()); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	next := kit.ReadFile(state.DeviceKey())
	if bytes.Equal(key, next) {
		t.Error("the key is not random")
	}
	if err := begin(joins, token.String()); err != nil || !bytes.Equal(next, kit.ReadFile(state.DeviceKey())) {
		t.Errorf("another key: %v", err)
	}
	files, err := os.ReadDir(filepath.Dir(state.DeviceKey()))
	if err != nil || len(files) != 2 {
		t.Errorf("left over: %v, %v", files, err)
	}
	for _, f := range files { // the lock is the directory's
		if info, err := f.Info(); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", f.Name(), info.Mode(), err)
		}
	}
}
