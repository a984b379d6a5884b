package document

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/internal/strictjson"
)

// Need is something that a host must fetch from a provider. A need is fulfilled if the delivered
// files result from the same Request, Deliver and Generation, and it is not due for renewal.
type Need struct {
	ID         string          `json:"id"`        // DNS label, unique on the host
	Kind       string          `json:"kind"`      // "cert", "oidc", "config", …
	For        spiffe.ID       `json:"for"`       // the service, user or node that it is for
	Providers  []string        `json:"providers"` // host names, in order of preference
	Request    json.RawMessage `json:"request"`   // a JSON object, defined by the provider's kind
	Deliver    Deliver         `json:"deliver"`
	OnChange   []string        `json:"onChange"`  // systemd units to restart when delivered content changes
	DependsOn  []string        `json:"dependsOn"` // IDs of needs that must be fulfilled first
	Renew      Renew           `json:"renew"`
	Generation int             `json:"generation"` // raised to rotate the secret
}

// Deliver maps values of the answer to files owned by an account and its group of the same name. If
// Owner is empty, the files belong to the user that activation runs as.
type Deliver struct {
	Files map[string]File `json:"files"` // by file name
	Owner string          `json:"owner"`
}

// File is a delivered file: the name of a value in the answer, and the octal mode ("0400").
type File struct {
	Value string `json:"value"`
	Mode  string `json:"mode"`
}

// Renew says when a fulfilled need is fetched again: after AtPercent of the validity of the issued
// certificate, or after Interval seconds. After Rotate seconds the secret is replaced. A zero value
// means never. After StaleAfter seconds without an answer the host raises an alarm, because it may
// have missed decisions.
type Renew struct {
	AtPercent  int `json:"atPercent,omitempty"`
	Interval   int `json:"interval,omitempty"`
	Rotate     int `json:"rotate,omitempty"`
	StaleAfter int `json:"staleAfter,omitempty"`
}

// Kinds of need that hosts handle specially: SVIDs, whose key the host generates; the host's
// documents; and certificates for public names.
const (
	KindCert   = "cert"
	KindConfig = "config"
	KindTLS    = "tls"
)

// PublicNames is the request of a need of kind tls: for a certificate for Names, or, without names,
// for the responses with which an ingress answers ACME challenges (RFC 8555). The host generates
// the key unless Shared is set.
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

// CertID returns the identity that a need of kind cert requests.
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

// KindFederation is the kind of need for the bundle of a foreign trust domain. FileTrustBundle is
// the file that it delivers.
const (
	KindFederation  = "federation"
	FileTrustBundle = "bundle.json"
)

// Documents returns the need through which the host receives documents over the network, or nil if
// it does not.
func (m Manifest) Documents() *Need {
	i := slices.IndexFunc(m.Needs, func(n Need) bool { return n.Kind == KindConfig })
	if i < 0 {
		return nil
	}
	return &m.Needs[i]
}
