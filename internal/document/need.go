package document

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/internal/strictjson"
)

// Need is something a host must fetch from a provider. It is fulfilled when what
// was delivered came from the same Request, Deliver and Generation and Renew is
// not due.
type Need struct {
	ID         string          `json:"id"`        // DNS label, unique on the host
	Kind       string          `json:"kind"`      // "cert", "oidc", "config", …
	For        spiffe.ID       `json:"for"`       // the service, user or node that it serves
	Providers  []string        `json:"providers"` // host names, in order of preference
	Request    json.RawMessage `json:"request"`   // an object; the provider's kind defines it
	Deliver    Deliver         `json:"deliver"`
	OnChange   []string        `json:"onChange"`  // systemd units that are restarted when delivered content changed
	DependsOn  []string        `json:"dependsOn"` // needs that must be fulfilled first
	Renew      Renew           `json:"renew"`
	Generation int             `json:"generation"` // raising it rotates
}

// Deliver maps values of the answer to files of an account and its group of the same
// name. An empty Owner leaves them to the user that activation runs as.
type Deliver struct {
	Files map[string]File `json:"files"` // by file name
	Owner string          `json:"owner"`
}

// File is one delivered file: a value of the answer, by name, with octal Mode ("0400").
type File struct {
	Value string `json:"value"`
	Mode  string `json:"mode"`
}

// Renew is when a fulfilled need is fetched again: after AtPercent of the validity of what
// was issued, or Interval seconds; after Rotate seconds its secret is replaced. Zero values
// mean never. After StaleAfter seconds without an answer, the host raises an alarm: it may
// miss what was decided since.
type Renew struct {
	AtPercent  int `json:"atPercent,omitempty"`
	Interval   int `json:"interval,omitempty"`
	Rotate     int `json:"rotate,omitempty"`
	StaleAfter int `json:"staleAfter,omitempty"`
}

// Kinds of need that hosts themselves know: for an SVID, whose key the host makes, for the
// host's documents, and for certificates of public names.
const (
	KindCert   = "cert"
	KindConfig = "config"
	KindTLS    = "tls"
)

// PublicNames is the request of a need of kind tls: a certificate for names, or without any
// what an ingress answers challenges with (RFC 8555). The host makes the key unless it is
// shared with others.
type PublicNames struct {
	Names    []string `json:"names"` // sorted; one may be a wildcard
	Internal bool     `json:"internal"`
	Shared   bool     `json:"shared"`
}

// PublicNames are those of a need of kind tls.
func (n Need) PublicNames() (p PublicNames, err error) {
	if err := strictjson.Decode(n.Request, &p); err != nil {
		return p, fmt.Errorf("need %q: request: %w", n.ID, err)
	}
	return p, nil
}

// CertID is the identity that a need of kind cert is for, which is all of its request.
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

// KindFederation is the kind of need for the bundle of a foreign trust domain, and
// FileTrustBundle the file that it delivers.
const (
	KindFederation  = "federation"
	FileTrustBundle = "bundle.json"
)

// Documents returns the need by which a manifest has its host receive documents over the network;
// nil for none.
func (m Manifest) Documents() *Need {
	i := slices.IndexFunc(m.Needs, func(n Need) bool { return n.Kind == KindConfig })
	if i < 0 {
		return nil
	}
	return &m.Needs[i]
}
