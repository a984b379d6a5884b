package identityfile

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/nix/operator/compile"
)

// readOne prepares an identity file with a single identity, for a machine that is not a host.
func (i *Issuing) readOne(ctx context.Context, src compile.Source) error {
	t, err := compile.ReadTopology(ctx, src)
	if err != nil {
		return err
	}
	if err := i.Key.CheckOf(t, "providers"); err != nil {
		return err
	}
	text := i.ID
	if !strings.Contains(text, "://") {
		text = "spiffe://" + t.TrustDomain + "/" + text
	}
	id, err := spiffe.ParseID(text)
	if err == nil && id.TrustDomain() != t.TrustDomain {
		err = fmt.Errorf("%s: not of trust domain %s", id, t.TrustDomain)
	}
	if err == nil {
		err = knows(t, id)
	}
	if err != nil {
		return fmt.Errorf("--id %w", err)
	}
	request, err := json.Marshal(map[string]spiffe.ID{"id": id})
	if err != nil {
		return err
	}
	i.ID, i.file.Roots = id.Short(), t.Trust.Roots
	i.manifest = document.Manifest{
		Cluster: t.Name, TrustDomain: t.TrustDomain, Trust: document.Trust{Roots: t.Trust.Roots, SigningKeys: t.Trust.SigningKeys},
		Needs: []document.Need{{ID: "one", Kind: document.KindCert, Request: request}},
	}
	return nil
}

// knows returns an error if the flake does not contain an identity. It accepts all vertices,
// because flakes do not contain them.
func knows(t compile.Topology, id spiffe.ID) error {
	switch id.Kind() {
	case spiffe.KindNode:
		return fmt.Errorf("%s: found a node, want a user or a service: for a node, pass --host %s", id.Short(), id.Name())
	case spiffe.KindUser:
		if _, ok := t.Users[id.Name()]; ok {
			return nil
		}
	case spiffe.KindService:
		for _, s := range t.Services {
			if slices.Contains(s.IDs, id) {
				return nil
			}
		}
	case spiffe.KindOutside:
		o, ok := t.Outside[id.Name()]
		if ok && o.ID == id {
			return nil
		} else if ok {
			return fmt.Errorf("%s: the flake knows it by its addresses alone: write outside.%s.mtls = true;", id.Short(), id.Name())
		}
	case spiffe.KindVertex:
		return nil
	}
	return fmt.Errorf("%s: not in cluster %s: florctl who-can SERVICE prints identities of the cluster", id.Short(), t.Name)
}
