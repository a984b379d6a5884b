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

// Values of the field "schema" in admissions and join grants.
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

// SignedGrant is the exact text of an encoded JoinGrant with its signatures, in Nix format.
type SignedGrant struct {
	Grant     string `json:"grant"`
	Signature string `json:"signature"`
}

// SignedAdmission is the exact text of an encoded Admission with its signature, in Nix format.
// Without a grant, the signature is by signing keys of the cluster. With a grant, it is by the key
// of the join token.
type SignedAdmission struct {
	Admission string       `json:"admission"`
	Signature string       `json:"signature"`
	Grant     *SignedGrant `json:"grant,omitempty"`
}

// AdmissionText and JoinGrantText return the texts that are signed for an admission and for a join
// grant. Their parameters are the encoded Admission and the encoded JoinGrant.
func AdmissionText(admission string) string { return "florete-admission-v1\n" + admission }
func JoinGrantText(grant string) string     { return "florete-join-grant-v1\n" + grant }

// NewAdmission returns an unsigned statement, in the newest format, that the public device key
// belongs to a node.
func NewAdmission(cluster string, node spiffe.ID, key string, now time.Time) Admission {
	return Admission{Schema: AdmissionSchema, Format: document.NewestFormat, Cluster: cluster, Node: node, Key: key, Time: unixtime.Of(now)}
}

// Verify checks that the grant is for the given node in the cluster and signed by enough of the
// keys in by. It returns the decoded grant. The caller must check the time at which the grant ends.
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

// Verify checks that the admission is for the given node in the cluster and properly signed, and
// returns the decoded admission. Without a grant, enough of the keys in by must have signed the
// admission. With a grant, they must have signed the grant, and the key of the join token must have
// signed the admission. The result until is then the time at which the grant ends, which the caller
// must check. Without a grant, it is zero.
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
