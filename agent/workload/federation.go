package workload

import (
	"slices"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/internal/trust"
)

// federates maps each identity that a process may have to the foreign trust domains whose
// identities may call it.
type federates map[spiffe.ID][]string

func newFederates(callers []document.Caller) federates {
	all := federates{}
	for _, c := range callers {
		all[c.ID] = c.Federates
	}
	return all
}

// foreign returns the bundles of the foreign trust domains whose identities may call one of the
// given identities.
func (st *state) foreign(ids []spiffe.ID) []*trust.Bundle {
	return slices.DeleteFunc(slices.Clone(st.identities.Bundles), func(b *trust.Bundle) bool {
		return !slices.ContainsFunc(ids, func(id spiffe.ID) bool {
			return slices.Contains(st.federates[id], b.TrustDomain())
		})
	})
}

// foreignRoots returns the roots of the foreign trust domains that may call one of the given
// identities. The key of the map is the trust domain. The value is its root certificates in DER,
// concatenated.
func (st *state) foreignRoots(ids []spiffe.ID) map[string][]byte {
	all := map[string][]byte{}
	for _, b := range st.foreign(ids) {
		all["spiffe://"+b.TrustDomain()] = raw(b.Roots())
	}
	return all
}

// foreignKeys returns the keys that verify JWT-SVIDs of the foreign trust domains that may call one
// of the given identities. The key of the map is the trust domain, and the value is a JWK Set. An
// empty set is left out, because clients do not accept it.
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

// raw returns the certificates of roots in DER, concatenated, as the Workload API requires.
func raw(roots *trust.Roots) (b []byte) {
	for _, root := range roots.Certificates() {
		b = append(b, root.Raw...)
	}
	return b
}
