package join

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/internal/unixtime"
	"github.com/florete/florete/providers/server"
)

// CodeIssue is the audit code of rows about certificates that an operator issued without a
// provider.
const CodeIssue = "id-issue"

// MaxIssued is the largest number of certificates in one value of type Issued.
const MaxIssued = 64

// Issued lists certificates that an operator issued without a provider, for example to write them
// to an identity file.
type Issued struct {
	Host         string        `json:"host,omitempty"`   // empty for a machine that is not a host
	Device       string        `json:"device,omitempty"` // fingerprint of the host's device key, if it joins
	Until        unixtime.Time `json:"until"`            // time at which all certificates have ended
	Certificates []IssuedSVID  `json:"certificates"`
}

// IssuedSVID describes one of the certificates in a value of type Issued.
type IssuedSVID struct {
	ID     spiffe.ID `json:"id"`
	Serial string    `json:"serial"` // in hex
}

// Issued writes an audit row about certificates that an operator issued without a provider. The
// provider has no other record of them. Issued returns its argument unchanged. If the argument is
// not valid, the error wraps ErrAct.
func (o *Operator) Issued(ctx context.Context, i Issued) (Issued, error) {
	if n := len(i.Certificates); n == 0 || n > MaxIssued {
		return i, refuse("%d certificates, want 1 to %d", n, MaxIssued)
	}
	if len(i.Host) > 63 || len(i.Device) > 80 {
		return i, refuse("host %.80q, device %.80q: want a name, and SHA256:…", i.Host, i.Device)
	}
	d := server.Decision{Detail: map[string]string{"until": i.Until.UTC().Format(time.RFC3339)}}
	if i.Host != "" {
		d.Detail["host"] = i.Host
	}
	if i.Device != "" {
		d.Detail["device"] = i.Device
	}
	var ids []string
	for _, c := range i.Certificates {
		if c.ID.TrustDomain() != o.Policy.TrustDomain || c.Serial == "" || len(c.Serial) > 40 || strings.Trim(c.Serial, "0123456789abcdef") != "" {
			return i, refuse("certificate %.80q of %s: want a number in hex, and an ID of %s", c.Serial, c.ID, o.Policy.TrustDomain)
		}
		ids = append(ids, c.ID.Short())
		d.Detail["certificate "+c.ID.Short()] = c.Serial
	}
	return i, o.commit(ctx, d, CodeIssue, fmt.Sprintf("an operator's identity file of %s until %s", strings.Join(ids, ", "), d.Detail["until"]))
}
