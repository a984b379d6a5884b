package document

import (
	"fmt"

	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/internal/strictjson"
)

// KindJWT is the kind of need for JWT-SVIDs and for the public keys that verify JWT-SVIDs.
const KindJWT = "jwt"

// Names of the files that a need of kind jwt delivers. One contains the public keys (JWK Set, RFC
// 7517), the other a JSON object that maps each audience to its token.
const (
	FileJWTKeys = "jwks.json"
	FileTokens  = "tokens.json"
)

// ClaimNode is the JWT claim that names the node to which a JWT-SVID was issued. When the node is
// revoked, its JWT-SVIDs are revoked with it.
const ClaimNode = "florete_node"

// JWTRequest is the request of a need of kind jwt. With an ID, it requests one JWT-SVID of this
// identity for each audience. Without an ID, it requests the public keys that verify JWT-SVIDs.
type JWTRequest struct {
	Issuer    string    `json:"issuer"` // claim iss, the base URL of OIDC discovery
	ID        spiffe.ID `json:"id,omitzero"`
	Audiences []string  `json:"audiences,omitempty"`
}

// JWT decodes the request of a need of kind jwt. It returns an error if the request has an ID
// without audiences, or audiences without an ID.
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
