package workload

import (
	"slices"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/internal/trust"
)

// federates contains the foreign trust domains of each identity that a process may have.
type federates map[spiffe.ID][]string

func newFederates(callers []document.Caller) federates {
	all := federates{}
	for _, c := range callers {
		all[c.ID] = c.Federates
	}
	return all
}

// foreign returns the bundles of the foreign trust domains whose identities may call one of ids.
func (st *state) foreign(ids []spiffe.ID) []*trust.Bundle {
	return slices.DeleteFunc(slices.Clone(st.identities.Bundles), func(b *trust.Bundle) bool {
		return !slices.ContainsFunc(ids, func(id spiffe.ID) bool {
			return slices.Contains(st.federates[id], b.TrustDomain())
		})
	})
}

// foreignRoots returns the certificates of these bundles by trust domain, concatenated.
func (st *state) foreignRoots(ids []spiffe.ID) map[string][]byte {
	all := map[string][]byte{}
	for _, b := range st.foreign(ids) {
		all["spiffe://"+b.TrustDomain()] = raw(b.Roots())
	}
	return all
}

// foreignKeys returns the keys for JWT-SVIDs of these bundles, each as a JWK Set. Empty sets are
// left out, because clients do not accept them.
func (st *state) foreignKeys(ids []spiffe.ID) (map[string][]byte, error) {
	all := map[string][]byte{}
	for _, b := range st.foreign(ids) {
		bundle := b.SPIFFE().JWTBundle()
		if bundle.Empty() {
			continue
		}
		keys, err := bundle.Marshal()
		if err != nil {
			return nil, err
		}
		all["spiffe://"+b.TrustDomain()] = keys
	}
	return all, nil
}

// raw returns roots in DER, concatenated.
func raw(roots *trust.Roots) (b []byte) {
	for _, root := range roots.Certificates() {
		b = append(b, root.Raw...)
	}
	return b
}
