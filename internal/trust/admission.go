package trust

import (
	"fmt"
	"time"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/signers"
	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/internal/strictjson"
	"github.com/florete/florete/internal/unixtime"
)

// Schemas of admissions and join grants.
const (
	AdmissionSchema = "florete.admission/v1"
	JoinGrantSchema = "florete.join-grant/v1"
)

// Admission is a signed statement that a device key belongs to a node. It is signed by an operator
// or, with a JoinGrant, by the holder of a join token. The statement does not name the token.
type Admission struct {
	Schema  string          `json:"schema"`
	Format  document.Format `json:"format"`
	Cluster string          `json:"cluster"`
	Node    spiffe.ID       `json:"node"`
	Key     string          `json:"key"` // the device key in authorized_keys form, without comment
	Time    unixtime.Time   `json:"time"`
}

// JoinGrant is an operator's signed statement that permits the holder of a join token to admit one
// device as a node, without further approval.
type JoinGrant struct {
	Schema  string          `json:"schema"`
	Format  document.Format `json:"format"`
	Cluster string          `json:"cluster"`
	Node    spiffe.ID       `json:"node"`
	Token   string          `json:"token"` // the token's public key, Nix format
	Until   unixtime.Time   `json:"until"` // time by which the device must have enrolled first
}

// SignedGrant is the exact text of an encoded JoinGrant, with its signature (Nix format).
type SignedGrant struct {
	Grant     string `json:"grant"`
	Signature string `json:"signature"`
}

// SignedAdmission is the exact text of an encoded Admission, with its signature (Nix format). The
// signature is by a key of the cluster or, if there is a grant, by the join token's key.
type SignedAdmission struct {
	Admission string       `json:"admission"`
	Signature string       `json:"signature"`
	Grant     *SignedGrant `json:"grant,omitempty"`
}

// AdmissionText and JoinGrantText return the texts that are signed for an encoded Admission and an
// encoded JoinGrant.
func AdmissionText(admission string) string { return "florete-admission-v1\n" + admission }
func JoinGrantText(grant string) string     { return "florete-join-grant-v1\n" + grant }

// NewAdmission returns the statement that the device key belongs to node, in the newest format.
func NewAdmission(cluster string, node spiffe.ID, key string, now time.Time) Admission {
	return Admission{Schema: AdmissionSchema, Format: document.NewestFormat, Cluster: cluster, Node: node, Key: key, Time: unixtime.Of(now)}
}

// Verify decodes the grant, and checks that it is for node in the cluster and signed by enough of
// the keys in by.
func (s SignedGrant) Verify(cluster string, node spiffe.ID, by signers.Set) (g JoinGrant, err error) {
	what := "join grant of " + node.Short()
	if err := by.Verify(what, JoinGrantText(s.Grant), s.Signature); err != nil {
		return g, err
	}
	if err := strictjson.Decode([]byte(s.Grant), &g); err != nil {
		return g, fmt.Errorf("%s: %w", what, err)
	}
	if g.Schema != JoinGrantSchema || g.Cluster != cluster || g.Node != node {
		return g, fmt.Errorf("%s: %s of %s in cluster %.64q, want %s of %s in %q", what, g.Schema, g.Node, g.Cluster, JoinGrantSchema, node, cluster)
	}
	return g, nil
}

// Verify decodes the admission, and checks that it is for node in the cluster. The admission must
// be signed by enough of the keys in by, or by the token's key in a grant that they signed. The
// result until is the end of the grant, which the caller must check. It is zero without a grant.
func (s SignedAdmission) Verify(cluster string, node spiffe.ID, by signers.Set) (a Admission, until time.Time, err error) {
	what := "admission of " + node.Short()
	if s.Grant != nil {
		g, err := s.Grant.Verify(cluster, node, by)
		if err != nil {
			return a, until, err
		}
		by, until = signers.Any(g.Token), g.Until.Time
	}
	if err := by.Verify(what, AdmissionText(s.Admission), s.Signature); err != nil {
		return a, until, err
	}
	if err := strictjson.Decode([]byte(s.Admission), &a); err != nil {
		return a, until, fmt.Errorf("%s: %w", what, err)
	}
	if a.Schema != AdmissionSchema || a.Cluster != cluster || a.Node != node {
		return a, until, fmt.Errorf("%s: %s of %s in cluster %.64q, want %s of %s in %q", what, a.Schema, a.Node, a.Cluster, AdmissionSchema, node, cluster)
	}
	return a, until, nil
}
