package document

import (
	"fmt"
	"slices"

	"github.com/florete/florete/internal/spiffe"
)

// Gate describes the sign-in that an ingress requires from visitors without an identity before it
// passes their requests to a service.
type Gate struct {
	Need    string `json:"need"`          // ID of the need of kind oidc with the credentials of the client
	Session int    `json:"session"`       // maximum age of a session in seconds
	Own     bool   `json:"own,omitempty"` // the issuer belongs to the cluster

	// Groups maps the group names that the service knows to the groups of the issuer whose people
	// have them. It is nil if the service sees the groups of the issuer.
	Groups map[string][]string `json:"groups,omitempty"`
}

// InnerGate is the part of a Gate inside the cluster. The forwarder that publishes the service
// passes on the HTTP requests of users, and writes the user in headers. It refuses all other
// callers, except ingresses.
type InnerGate struct {
	// Ingresses lists the identities of the ingresses at which strangers sign in. The headers in
	// their requests say who signed in.
	Ingresses []spiffe.ID `json:"ingresses"` // sorted
}

// maxSession is the maximum of Session: 30 days.
const maxSession = 30 * 86400

// checkGate checks the sign-ins that an ingress requires. The needs with their credentials must be
// in the manifest.
func (m Manifest) checkGate() error {
	for i, p := range m.Forwarder.Publish {
		if p.Gate != nil && p.Protocol == UDP {
			return fmt.Errorf("forwarder.publish[%d].gate: want no gate of a service over UDP", i)
		}
	}
	for i, r := range m.Forwarder.Reach {
		g := r.Gate
		if g == nil {
			continue
		}
		switch {
		case r.TLSName == "":
			return fmt.Errorf("forwarder.reach[%d].gate: the service has no tlsName", i)
		case slices.ContainsFunc(r.TLSAliases, IsWildcard):
			return fmt.Errorf("forwarder.reach[%d].gate: want no wildcard among tlsAliases %q", i, r.TLSAliases)
		case r.GRPC:
			return fmt.Errorf("forwarder.reach[%d].gate: programs that speak gRPC cannot sign in", i)
		case g.Session < 1 || g.Session > maxSession:
			return fmt.Errorf("forwarder.reach[%d].gate: session %d, want 1 to %d seconds", i, g.Session, maxSession)
		case !slices.ContainsFunc(m.Needs, func(n Need) bool { return n.ID == g.Need && n.Kind == KindOIDC }):
			return fmt.Errorf("forwarder.reach[%d].gate: no need %q of kind %s", i, g.Need, KindOIDC)
		}
	}
	return nil
}
