package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"path/filepath"
	"testing"

	"github.com/spf13/cobra"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/nix/operator/compile"
	"github.com/florete/florete/providers/publish"
	"github.com/florete/florete/tests/kit"
)

// taker is a provider that takes a publication, or fails to.
type taker struct {
	provider
	err error
}

func (taker) Host() string { return "taker" }

func (t taker) Import(context.Context, io.Reader, importing) (string, error) { return "taken", t.err }

// TestPartly: a publication that only some of several providers took ends with errPartly, and counts as
// one that was served; one that none took is an error, and is none. Those that share a store have the same.
func TestPartly(t *testing.T) {
	down, up := taker{err: errors.New("down")}, taker{}
	shares := publish.Tree{"forge": {kit.Document(7, document.Policy{Cluster: "demo", Host: "forge", TrustDomain: kit.Domain, Provider: map[string]document.Listening{}, Kinds: map[string]json.RawMessage{}, Store: &document.SharedStore{Endpoints: []string{"https://192.0.2.1:2379"}, Replicas: map[string][]document.Device{}}})}}
	for name, c := range map[string]struct {
		providers []provider
		tree      publish.Tree
		partly    bool
		fails     bool
	}{
		"all":    {[]provider{up, up}, publish.Tree{}, false, false},
		"some":   {[]provider{down, up}, publish.Tree{}, true, false},
		"shared": {[]provider{down, up}, shares, false, false},
		"none":   {[]provider{down, down}, publish.Tree{}, false, true},
	} {
		r, err := openRecord(filepath.Join(t.TempDir(), "key"), "", "demo")
		if err != nil {
			t.Fatal(err)
		}
		cmd := &cobra.Command{}
		cmd.SetContext(t.Context())
		cmd.SetOut(io.Discard)
		err = published{compile.Topology{}, c.providers}.publishRecorded(cmd, r, signedVersion{Serial: 7}, importing{}, c.tree)
		if errors.Is(err, errPartly) != c.partly || (err != nil) != (c.partly || c.fails) {
			t.Errorf("%s: %v", name, err)
		}
		if served := r.served().Serial == 7; served == c.fails {
			t.Errorf("%s: served %v", name, served)
		}
	}
}
