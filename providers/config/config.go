// Package config is the kind of need that hands a node its own signed documents:
//
//	GET /config/artifact/<node>?serial=1784011430
//	Device-Proof: LS0tLS1CRUdJTiBTU0gg…
//	→ {"documents":[{"envelope":"…","body":"…","signature":"…"}, …]}
//
// They lie in one directory per node as `florctl publish` leaves them. The host
// verifies their signatures: a provider can withhold documents, not forge them.
package config

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/florete/florete"
	"github.com/florete/florete/providers/api"
	"github.com/florete/florete/providers/publish"
	"github.com/florete/florete/providers/server"
)

// Name of the kind.
const Name = "config"

// Settings are the kind's section of the settings file.
type Settings struct {
	Artifacts string `json:"artifacts" path:"" want:"name the directory that flor-provider import writes"`
}

// Kind makes the kind.
func (s *Settings) Kind(server.Process) server.Kind { return Artifacts(s.Artifacts) }

// Artifacts is the kind "config": a directory with one of documents per node.
type Artifacts string

var (
	_ server.Reader   = Artifacts("")
	_ server.Receiver = Artifacts("")
	_ server.Deployed = Artifacts("")
)

// Name of the kind.
func (a Artifacts) Name() string { return Name }

// Compile rejects settings, of which there are none.
func (a Artifacts) Compile(p florete.Policy) (any, error) {
	return nil, server.Settings(p, Name, &struct{}{})
}

// InForce is the publication.
func (a Artifacts) InForce() server.Version {
	tree, err := filepath.EvalSymlinks(string(a))
	if err != nil {
		return server.Version{}
	}
	return server.Version{Name: "the publication", Digest: filepath.Base(tree), Serial: publish.SerialOf(tree)}
}

// Read reads the documents of the calling node. All are of one publication: see
// Publish.
func (a Artifacts) Read(_ context.Context, c server.Call) (api.Artifact, error) {
	none := api.Artifact{}
	tree, err := filepath.EvalSymlinks(string(a))
	if err != nil {
		return none, api.Errorf(api.Transient, api.CodeMissing, "documents of %s: nothing is published here yet", c.Caller.Short())
	}
	dir := filepath.Join(tree, c.Caller.Name())
	var artifact api.Artifact
	for _, kind := range []string{florete.DocManifest, florete.DocPolicy} {
		d, err := florete.Read(dir, kind)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return none, err
		}
		envelope, body, signature := d.Bytes()
		if signature == "" {
			return none, fmt.Errorf("%s: %s is not signed: publish it with florctl", dir, kind)
		}
		if d.Envelope.Host != c.Caller.Name() {
			return none, fmt.Errorf("%s: the %s is of host %s", dir, kind, d.Envelope.Host)
		}
		artifact.Documents = append(artifact.Documents, api.SignedDocument{Envelope: string(envelope), Body: string(body), Signature: signature})
	}
	if len(artifact.Documents) == 0 {
		return none, api.Errorf(api.Transient, api.CodeMissing, "documents of %s: none are published here yet", c.Caller.Short())
	}
	return artifact, nil
}
