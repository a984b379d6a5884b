package trust

import (
	"fmt"
	"time"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/internal/strictjson"
	"github.com/florete/florete/internal/unixtime"
)

// Schemas of what admits a device, and their first format.
const (
	AdmissionSchema = "florete.admission/v1"
	JoinGrantSchema = "florete.join-grant/v1"
)

// Admission is the word of an operator, or of a token's bearer whom one let decide, that a
// device is a node. It names the token nowhere.
type Admission struct {
	Schema  string          `json:"schema"`
	Format  document.Format `json:"format"`
	Cluster string          `json:"cluster"`
	Node    spiffe.ID       `json:"node"`
	Key     string          `json:"key"` // the device's, in authorized_keys form, without comment
	Time    unixtime.Time   `json:"time"`
}

// JoinGrant is an operator's word that whoever has a token's key may admit one device as a
// node.
type JoinGrant struct {
	Schema  string          `json:"schema"`
	Format  document.Format `json:"format"`
	Cluster string          `json:"cluster"`
	Node    spiffe.ID       `json:"node"`
	Token   string          `json:"token"` // the token's public key, Nix format
	Until   unixtime.Time   `json:"until"` // when the device must have enrolled for the first time
}

// SignedGrant is a JoinGrant byte for byte, with its signature (Nix format).
type SignedGrant struct {
	Grant     string `json:"grant"`
	Signature string `json:"signature"`
}

// SignedAdmission is an Admission byte for byte, with its signature (Nix format): by a key of
// the cluster, or where there is a grant by the token's key.
type SignedAdmission struct {
	Admission string       `json:"admission"`
	Signature string       `json:"signature"`
	Grant     *SignedGrant `json:"grant,omitempty"`
}

// AdmissionText and JoinGrantText are what signatures cover.
func AdmissionText(admission string) string { return "florete-admission-v1\n" + admission }
func JoinGrantText(grant string) string     { return "florete-join-grant-v1\n" + grant }

// NewAdmission is that of a device, in this format.
func NewAdmission(cluster string, node spiffe.ID, key string, now time.Time) Admission {
	return Admission{Schema: AdmissionSchema, Format: document.NewestFormat, Cluster: cluster, Node: node, Key: key, Time: unixtime.Of(now)}
}

// Verify returns what a signature by one of keys covers, for a node of a cluster.
func (s SignedGrant) Verify(cluster string, node spiffe.ID, keys []string) (g JoinGrant, err error) {
	what := "join grant of " + node.Short()
	if err := document.VerifySignature(what, JoinGrantText(s.Grant), s.Signature, keys); err != nil {
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

// Verify returns what was signed for a node of a cluster by one of its keys, directly or by a
// grant. The grant's end is for its caller to judge: until is zero where there is none.
func (s SignedAdmission) Verify(cluster string, node spiffe.ID, keys []string) (a Admission, until time.Time, err error) {
	what := "admission of " + node.Short()
	if s.Grant != nil {
		g, err := s.Grant.Verify(cluster, node, keys)
		if err != nil {
			return a, until, err
		}
		keys, until = []string{g.Token}, g.Until.Time
	}
	if err := document.VerifySignature(what, AdmissionText(s.Admission), s.Signature, keys); err != nil {
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
