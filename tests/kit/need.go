package kit

import (
	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostdir"
	"github.com/florete/florete/internal/spiffe"
)

// Issuer is the OIDC issuer at which the users of a test cluster sign in.
const Issuer = "http://auth." + Domain + ".rete"

// CertNeed returns a need for the SVID of a given SPIFFE ID, as a manifest contains it. The need
// depends on the node's own SVID, unless the ID is that of a node.
func CertNeed(of spiffe.ID, providers ...string) document.Need {
	n := need("cert-"+string(of.Kind())+"-"+of.Name(), "cert", of, map[string]any{"id": of}, providers)
	n.Deliver.Files = map[string]document.File{
		hostdir.FileSVID:   {Value: "svid", Mode: "0444"},
		hostdir.FileKey:    {Value: "key", Mode: "0400"},
		hostdir.FileBundle: {Value: "bundle", Mode: "0444"},
	}
	n.Renew.AtPercent = 66
	if of.Kind() == spiffe.KindNode {
		n.ID, n.DependsOn = nodeNeed, []string{}
	}
	return n
}

// OIDCNeed returns a need for the OIDC client of a service, as a manifest contains it. When the
// client changes, the host restarts the unit of the service.
func OIDCNeed(id string, service spiffe.ID, providers ...string) document.Need {
	n := need(id, "oidc", service, map[string]any{
		"issuer": Issuer, "service": service, "redirectURIs": []string{"http://" + service.Name() + "/callback"},
	}, providers)
	n.Deliver.Files = map[string]document.File{
		"client-id":     {Value: "clientId", Mode: "0444"},
		"client-secret": {Value: "clientSecret", Mode: "0400"},
		"issuer":        {Value: "issuer", Mode: "0444"},
	}
	n.OnChange = []string{service.Name() + ".service"}
	return n
}

// TokenIssuer is the issuer of the JWT-SVIDs of a test cluster.
const TokenIssuer = "http://tokens." + Domain + ".rete"

// JWTNeed returns a need for JWT-SVIDs of a service for the given audiences, as a manifest contains
// it. Without audiences, it returns the need of a node for the public keys that verify JWT-SVIDs.
func JWTNeed(of spiffe.ID, audiences ...string) document.Need {
	r, id := document.JWTRequest{Issuer: TokenIssuer}, "jwt-keys"
	file, f := document.FileJWTKeys, document.File{Value: "jwks", Mode: "0444"}
	if len(audiences) > 0 {
		id, r.ID, r.Audiences = "jwt-service-"+of.Name(), of, audiences
		file, f = document.FileTokens, document.File{Value: "tokens", Mode: "0400"}
	}
	n := need(id, document.KindJWT, of, r, []string{"forge"})
	n.Deliver.Files[file] = f
	n.Renew.AtPercent = 50
	return n
}

// SSHNeed returns a need for the SSH certificate of a user. If the ID is that of a node, it returns
// the need of the node for the public keys that verify such certificates.
func SSHNeed(of spiffe.ID, providers ...string) document.Need {
	if of.Kind() == spiffe.KindNode {
		n := need("ssh-keys", document.KindSSH, of, document.SSHRequest{}, providers)
		n.Deliver.Files[document.FileSSHAuthority] = document.File{Value: "ca", Mode: "0444"}
		n.Renew.AtPercent = 50
		return n
	}
	n := need("ssh-user-"+of.Name(), document.KindSSH, of, document.SSHRequest{ID: of}, providers)
	n.Deliver.Files[document.FileSSHKey] = document.File{Value: "key", Mode: "0400"}
	n.Deliver.Files[document.FileSSHCertificate] = document.File{Value: "certificate", Mode: "0444"}
	n.Renew.AtPercent = 66
	return n
}

// ConfigNeed returns the need of a host for its own documents.
func ConfigNeed(node spiffe.ID, providers ...string) document.Need {
	n := need("config-documents", "config", node, struct{}{}, providers)
	n.Renew.Interval = 900
	return n
}

// nodeNeed is the ID of the need for the node's own SVID.
const nodeNeed = "cert-node"

func need(id, kind string, of spiffe.ID, request any, providers []string) document.Need {
	return document.Need{
		ID: id, Kind: kind, For: of, Providers: providers, Request: JSON(request), Deliver: document.Deliver{Files: map[string]document.File{}},
		OnChange: []string{}, DependsOn: []string{nodeNeed}, Generation: 1,
	}
}

// FederationNeed returns a need for the bundle of a foreign trust domain.
func FederationNeed(name, trustDomain string, providers ...string) document.Need {
	n := need("federation-"+name, document.KindFederation, ID("node/ursula"), map[string]string{"trustDomain": trustDomain}, providers)
	n.Deliver.Files = map[string]document.File{document.FileTrustBundle: {Value: "bundle", Mode: "0444"}}
	return n
}
