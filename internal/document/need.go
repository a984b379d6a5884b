package document

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/internal/strictjson"
)

// Need describes files that a host must fetch from a provider, such as a certificate or an OIDC
// client secret. A need is fulfilled while the delivered files belong to its current Request,
// Deliver and Generation, and are not due for renewal.
type Need struct {
	ID         string          `json:"id"`        // DNS label, unique on the host
	Kind       string          `json:"kind"`      // "cert", "oidc", "config", …
	For        spiffe.ID       `json:"for"`       // the service, user or node that uses the files
	Providers  []string        `json:"providers"` // host names, in order of preference
	Request    json.RawMessage `json:"request"`   // a JSON object, defined by the provider's kind
	Deliver    Deliver         `json:"deliver"`
	OnChange   []string        `json:"onChange"`  // systemd units to restart when delivered content changes
	DependsOn  []string        `json:"dependsOn"` // IDs of needs that must be fulfilled first
	Renew      Renew           `json:"renew"`
	Generation int             `json:"generation"` // raised to rotate the secret
}

// Deliver lists the files to which a host writes the values of a provider's answer. The files
// belong to the account Owner and the group of the same name. If Owner is empty, they belong to the
// account that runs activation.
type Deliver struct {
	Files map[string]File `json:"files"` // keys are file names
	Owner string          `json:"owner"`
}

// File describes a file that a host writes for a need. The file contains the value that the
// provider's answer has under the name Value. Mode is the file's mode in octal, such as "0400".
type File struct {
	Value string `json:"value"`
	Mode  string `json:"mode"`
}

// Renew says when a host renews a fulfilled need. A value of zero means never.
//
//   - AtPercent: the host fetches the need again after this percentage of the certificate's
//     validity.
//   - Interval: the host fetches the need again after this many seconds.
//   - Rotate: the host requests a new secret after this many seconds.
//   - StaleAfter: the host raises an alarm after this many seconds without an answer, because it
//     may have missed new documents.
type Renew struct {
	AtPercent  int `json:"atPercent,omitempty"`
	Interval   int `json:"interval,omitempty"`
	Rotate     int `json:"rotate,omitempty"`
	StaleAfter int `json:"staleAfter,omitempty"`
}

// Kinds of need that hosts treat in a special way. A need of kind cert delivers an SVID, for which
// the host generates the key. A need of kind config delivers the host's documents. A need of kind
// oidc delivers the credentials of a client at an issuer. A need of kind tls delivers a certificate
// for public names.
const (
	KindCert   = "cert"
	KindConfig = "config"
	KindOIDC   = "oidc"
	KindTLS    = "tls"
)

// PublicNames is the request of a need of kind tls. With names, it requests a certificate for them.
// Without names, it requests the responses with which an ingress answers ACME challenges (RFC
// 8555). The host generates the key of the certificate unless Shared is set.
type PublicNames struct {
	Names    []string `json:"names"` // sorted; one may be a wildcard
	Internal bool     `json:"internal"`
	Shared   bool     `json:"shared"`
}

// PublicNames decodes the request of a need of kind tls.
func (n Need) PublicNames() (p PublicNames, err error) {
	if err := strictjson.Decode(n.Request, &p); err != nil {
		return p, fmt.Errorf("need %q: request: %w", n.ID, err)
	}
	return p, nil
}

// CertID decodes the request of a need of kind cert, and returns the SPIFFE ID for which it
// requests an SVID.
func (n Need) CertID() (spiffe.ID, error) {
	var request struct {
		ID spiffe.ID `json:"id"`
	}
	if err := strictjson.Decode(n.Request, &request); err != nil {
		return spiffe.ID{}, fmt.Errorf("need %q: request: %w", n.ID, err)
	}
	if request.ID.IsZero() {
		return spiffe.ID{}, fmt.Errorf("need %q: request has no id", n.ID)
	}
	return request.ID, nil
}

// KindFederation is the kind of need for the trust bundle of a foreign trust domain.
// FileTrustBundle is the name of the delivered file that contains the bundle.
const (
	KindFederation  = "federation"
	FileTrustBundle = "bundle.json"
)

// Documents returns the need by which the host fetches its documents over the network. It returns
// nil if the host gets its documents in another way.
func (m Manifest) Documents() *Need {
	i := slices.IndexFunc(m.Needs, func(n Need) bool { return n.Kind == KindConfig })
	if i < 0 {
		return nil
	}
	return &m.Needs[i]
}
