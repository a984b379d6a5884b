// Package accessgrant defines access grants, which give a user a role for some hours, and verifies
// them.
//
// A user requests a role, and an approver signs a Grant with an SSH key (OpenSSH PROTOCOL.sshsig,
// namespace "florete-access"). Providers carry grants to the hosts that publish services of the
// role. Each host verifies a grant by the keys in its own manifest, so that a provider can withhold
// a grant, and cannot make one. A second statement of the same form, with Ends, ends a grant early.
package accessgrant

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/hiddeco/sshsig"
	"golang.org/x/crypto/ssh"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/pubkey"
	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/internal/strictjson"
	"github.com/florete/florete/internal/unixtime"
)

// Namespace is the sshsig namespace of the signatures of grants.
const Namespace = "florete-access"

// Schema is the schema of a grant.
const Schema = "florete.access-grant/v1"

// These constants are limits. Ahead is the time by which the clock of an approver may be ahead of
// that of a host: a grant is in force this much before its time From.
const (
	MaxSize  = 2 << 10 // bytes of a signed grant
	MaxKnown = 512     // statements that a provider offers, and that a host keeps
	Ahead    = 2 * time.Minute
)

// Grant gives a user a role for a time. If Ends is true, it ends the grant that has the same ID.
type Grant struct {
	Schema  string        `json:"schema"`
	Cluster string        `json:"cluster"`
	ID      string        `json:"id"` // 32 lower-case hex digits, chosen at random with the request
	Role    string        `json:"role"`
	User    spiffe.ID     `json:"user"`     // user who gets the role
	From    unixtime.Time `json:"from"`     // time at which the grant was signed
	Until   unixtime.Time `json:"until"`    // time at which the grant ends
	By      spiffe.ID     `json:"approver"` // approver who signed this statement
	Ends    bool          `json:"ends,omitempty"`
}

// Signed is the exact text of a grant, with its signature by the approver.
type Signed struct {
	Grant     string `json:"grant"`
	Signature string `json:"signature"` // armored sshsig over Text
}

// Text returns the text that an approver signs for an encoded grant.
func Text(grant string) []byte { return []byte("florete-access-grant-v1\n" + grant) }

var idPattern = regexp.MustCompile(`^[0-9a-f]{32}$`)

// IsID reports whether a text has the form of the ID of a request or a grant.
func IsID(text string) bool { return idPattern.MatchString(text) }

// Encode returns the text of a grant, as Signed contains it.
func (g Grant) Encode() string {
	b := strictjson.Encode(g)
	return string(b)
}

// Open decodes a grant and checks its form. It does not verify the signature, which Verify does.
func (s Signed) Open() (g Grant, err error) {
	if n := len(s.Grant) + len(s.Signature); n > MaxSize {
		return g, fmt.Errorf("access grant of %d bytes, want at most %d", n, MaxSize)
	}
	if err := strictjson.Decode([]byte(s.Grant), &g); err != nil {
		return g, fmt.Errorf("access grant: %w", err)
	}
	switch {
	case g.Schema != Schema:
		return g, fmt.Errorf("access grant: schema %.64q, want %q", g.Schema, Schema)
	case !IsID(g.ID):
		return g, fmt.Errorf("access grant: ID %.64q, want 32 hex digits", g.ID)
	case g.Role == "" || g.User.Kind() != spiffe.KindUser || g.By.Kind() != spiffe.KindUser:
		return g, fmt.Errorf("access grant %s: role %.64q for %s by %s, want a role, and two users", g.ID, g.Role, g.User, g.By)
	case g.From.IsZero() || !g.Until.After(g.From.Time):
		return g, fmt.Errorf("access grant %s: ends at %s, want a time after its beginning", g.ID, g.Until.UTC().Format(time.RFC3339))
	}
	return g, nil
}

// Verify returns the grant if it is for the given cluster, if the requests of a manifest permit it,
// and if its approver signed it. It does not compare the grant with the time, see InForce.
func (s Signed) Verify(cluster string, requests map[string]document.Request) (Grant, error) {
	g, err := s.Open()
	if err != nil {
		return g, err
	}
	r, ok := requests[g.Role]
	switch most := time.Duration(r.Most) * time.Hour; {
	case g.Cluster != cluster:
		return g, fmt.Errorf("access grant %s is of cluster %.64q, want %q", g.ID, g.Cluster, cluster)
	case !ok:
		return g, fmt.Errorf("access grant %s: nobody may request role %.64q: write roles.<name>.request", g.ID, g.Role)
	case g.Ends:
	case g.By == g.User:
		return g, fmt.Errorf("access grant %s: %s approved a request of their own: another approver of role %s must", g.ID, g.By.Short(), g.Role)
	case g.Until.Sub(g.From.Time) > most:
		return g, fmt.Errorf("access grant %s: lasts %s, want at most the %s of roles.%s.request.most", g.ID, g.Until.Sub(g.From.Time), most, g.Role)
	}
	sig, err := sshsig.Unarmor([]byte(s.Signature))
	if err != nil {
		return g, fmt.Errorf("access grant %s: signature: %w", g.ID, err)
	}
	for _, a := range r.Approvers {
		if a.ID != g.By {
			continue
		}
		for _, line := range a.Keys {
			if key, err := ParseKey(line); err == nil && sshsig.Verify(bytes.NewReader(Text(s.Grant)), sig, key, sig.HashAlgorithm, Namespace) == nil {
				return g, nil
			}
		}
		return g, fmt.Errorf("access grant %s: signed with none of the keys of %s: users.%s.approvalKeys has them", g.ID, g.By.Short(), g.By.Name())
	}
	return g, fmt.Errorf("access grant %s: %s is no approver of role %s: a user of a team in roles.%[3]s.request.approve must approve", g.ID, g.By.Short(), g.Role)
}

// ParseKey parses an SSH public key in authorized_keys form. It refuses keys that are too weak.
func ParseKey(line string) (ssh.PublicKey, error) {
	key, _, _, rest, err := ssh.ParseAuthorizedKey([]byte(line))
	if err != nil || strings.TrimSpace(string(rest)) != "" {
		return nil, fmt.Errorf("%.80q: want one SSH public key", line)
	}
	plain, ok := key.(ssh.CryptoPublicKey)
	if !ok {
		return nil, fmt.Errorf("SSH key of type %s, want a plain one", key.Type())
	}
	return key, pubkey.CheckHost(plain.CryptoPublicKey())
}
