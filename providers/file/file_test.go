package file

import (
	"encoding/json"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/providers/sealedstore"
	"github.com/florete/florete/providers/server"
	"github.com/florete/florete/providers/store/sqlite"
	"github.com/florete/florete/tests/kit"
	"github.com/florete/florete/tests/kit/providertest"
)

const secret = "correct horse battery staple"

// answering is the kind without its socket.
type answering struct {
	server.Kind[server.Requests[Request]]
}

// newFiles is the kind on a directory, with a store of its own.
func newFiles(t *testing.T, dir string) Files {
	t.Helper()
	db, err := sqlite.Open(filepath.Join(t.TempDir(), "state.db"), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	key, err := sealedstore.New(sealedstore.Secret())
	if err != nil {
		t.Fatal(err)
	}
	return Files{Dir: dir, Store: db, Key: key}
}

// put writes a file at the provider.
func put(t *testing.T, dir, ref, content string, mode os.FileMode) {
	t.Helper()
	path := filepath.Join(dir, ref)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), mode); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, mode); err != nil { // whatever the umask
		t.Fatal(err)
	}
}

func TestConformance(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, "outline/smtp", secret, 0o600)
	providertest.Run(t, providertest.Suite{
		Kind: Name, Need: "file-outline-smtp",
		Request:  Request{Ref: "outline/smtp"},
		Settings: struct{}{},
		Make: func(e *providertest.Env) server.AnyKind {
			return server.Any(answering{Files{Dir: dir, Store: e.Store, Key: e.Key}})
		},
		Secret: []string{"content"},
	})
}

func TestRefusals(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, "smtp", secret, 0o600)
	put(t, dir, "dir/smtp", secret, 0o600)
	put(t, dir, "open", secret, 0o644)
	put(t, dir, "keytab", secret+"\xff", 0o600)
	put(t, dir, "long", strings.Repeat("x", limit+1), 0o600)
	outside := filepath.Join(t.TempDir(), "outside")
	put(t, filepath.Dir(outside), "outside", secret, 0o600)
	if err := os.Symlink(outside, filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	if err := os.Link(outside, filepath.Join(dir, "hard")); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(filepath.Join(dir, "fifo"), 0o600); err != nil {
		t.Fatal(err)
	}
	socket, err := net.Listen("unix", filepath.Join(dir, "socket"))
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	files := newFiles(t, dir)
	for body, want := range map[string]struct {
		kind hostapi.Class // empty for another error
		part string
	}{
		`{"ref":"none"}`:            {hostapi.Transient, "not on this provider yet"},
		`{"ref":"../outside"}`:      {"", "not the name of a file"},
		`{"ref":"/etc/passwd"}`:     {"", "not the name of a file"},
		`{"ref":"."}`:               {"", "not the name of a file"},
		`{"ref":""}`:                {"", "not the name of a file"},
		`{"ref":"smtp","more":"x"}`: {"", "more"},
		`{"ref":"open"}`:            {"", "chmod 0600"},
		`{"ref":"long"}`:            {"", "want at most"},
		`{"ref":"keytab"}`:          {"", "not text"},
		`{"ref":"link"}`:            {"", "a symbolic link that is absolute or leads out of " + dir},
		`{"ref":"hard"}`:            {"", "has another hard link"},
		`{"ref":"fifo"}`:            {"", "want a regular file"},
		`{"ref":"socket"}`:          {"", "no such device"},
		`{"ref":"dir"}`:             {"", "want a regular file"},
	} {
		grant := document.Grant{Caller: kit.ID("node/ursula"), Need: "file-wiki-smtp", Kind: Name, Request: json.RawMessage(body), Generation: 1}
		compiled, err := files.Compile(document.Policy{Kinds: map[string]json.RawMessage{Name: json.RawMessage(`{}`)}, Grants: []document.Grant{grant}})
		if err == nil {
			_, err = files.Answer(t.Context(), compiled, server.Call{Caller: grant.Caller, Grant: grant})
		}
		var e *hostapi.Error
		if err == nil || !strings.Contains(err.Error(), want.part) || errors.As(err, &e) != (want.kind != "") || e != nil && e.Kind != want.kind {
			t.Errorf("%s: got %v", body, err)
		}
		if err != nil && strings.Contains(err.Error(), secret) {
			t.Errorf("%s: the error tells the secret", body)
		}
	}
}
