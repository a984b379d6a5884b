package document

import (
	"fmt"

	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/internal/strictjson"
)

// KindJWT is the kind of need for JWT-SVIDs, and for the keys that verify them.
const KindJWT = "jwt"

// Files of its needs: the public keys (JWK Set, RFC 7517), and a JSON object of tokens by
// audience.
const (
	FileJWTKeys = "jwks.json"
	FileTokens  = "tokens.json"
)

// ClaimNode is the claim that has the name of the node that a JWT-SVID was issued to, so that
// revoking the node revokes the token.
const ClaimNode = "florete_node"

// JWTRequest is the request of a need of kind jwt: for an identity's JWT-SVIDs, one for each
// audience, or without an identity for the keys.
type JWTRequest struct {
	Issuer    string    `json:"issuer"` // claim iss, below which OIDC discovery is
	ID        spiffe.ID `json:"id,omitzero"`
	Audiences []string  `json:"audiences,omitempty"`
}

// JWT decodes the request of a need of kind jwt.
func (n Need) JWT() (r JWTRequest, err error) {
	if err = strictjson.Decode(n.Request, &r); err == nil && r.Issuer == "" {
		err = fmt.Errorf("no issuer")
	}
	if err == nil && r.ID.IsZero() != (len(r.Audiences) == 0) {
		err = fmt.Errorf("id %q with %d audiences, want both or neither", r.ID, len(r.Audiences))
	}
	if err != nil {
		err = fmt.Errorf("need %q: request: %w", n.ID, err)
	}
	return r, err
}
