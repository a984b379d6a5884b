package kit

import (
	"bytes"

	"github.com/hiddeco/sshsig"
	"golang.org/x/crypto/ssh"

	"github.com/florete/florete/internal/accessgrant"
	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/spiffe"
)

// SignGrant returns an access grant of the cluster demo, signed with an approver's key. It fills in
// the schema and the cluster if they are empty.
func SignGrant(g accessgrant.Grant, key ssh.Signer) accessgrant.Signed {
	if g.Schema == "" {
		g.Schema = accessgrant.Schema
	}
	if g.Cluster == "" {
		g.Cluster = "demo"
	}
	text := g.Encode()
	sig := must(sshsig.Sign(bytes.NewReader(accessgrant.Text(text)), key, sshsig.HashSHA512, accessgrant.Namespace))
	return accessgrant.Signed{Grant: text, Signature: string(sshsig.Armor(sig))}
}

// Approver returns the entry of a manifest for an approver with one key.
func Approver(id spiffe.ID, key ssh.Signer) document.Approver {
	return document.Approver{ID: id, Keys: []string{Authorized(key.PublicKey())}}
}
