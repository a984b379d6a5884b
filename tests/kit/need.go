package kit

import (
	"github.com/florete/florete"
)

// Issuer is where people sign in.
const Issuer = "http://auth." + Domain + ".rete"

// CertNeed is a need for an SVID; the node's own comes before any other.
func CertNeed(of florete.ID, providers ...string) florete.Need {
	n := need("cert-"+string(of.Kind())+"-"+of.Name(), "cert", of, map[string]any{"id": of}, providers)
	n.Deliver.Files = map[string]florete.File{
		florete.FileSVID:   {Value: "svid", Mode: "0444"},
		florete.FileKey:    {Value: "key", Mode: "0400"},
		florete.FileBundle: {Value: "bundle", Mode: "0444"},
	}
	n.Renew.AtPercent = 66
	if of.Kind() == florete.KindNode {
		n.ID, n.DependsOn = nodeNeed, []string{}
	}
	return n
}

// OIDCNeed is a need for the client of a service, which is restarted.
func OIDCNeed(id string, service florete.ID, providers ...string) florete.Need {
	n := need(id, "oidc", service, map[string]any{
		"issuer": Issuer, "service": service, "redirectURIs": []string{"http://" + service.Name() + "/callback"},
	}, providers)
	n.Deliver.Files = map[string]florete.File{
		"client-id":     {Value: "clientId", Mode: "0444"},
		"client-secret": {Value: "clientSecret", Mode: "0400"},
		"issuer":        {Value: "issuer", Mode: "0444"},
	}
	n.OnChange = []string{service.Name() + ".service"}
	return n
}

// TokenIssuer is the issuer of JWT-SVIDs.
const TokenIssuer = "http://tokens." + Domain + ".rete"

// JWTNeed is a need for the JWT-SVIDs of a service, or without audiences of a node for the keys.
func JWTNeed(of florete.ID, audiences ...string) florete.Need {
	r, id := florete.JWTRequest{Issuer: TokenIssuer}, "jwt-keys"
	file, f := florete.FileJWTKeys, florete.File{Value: "jwks", Mode: "0444"}
	if len(audiences) > 0 {
		id, r.ID, r.Audiences = "jwt-service-"+of.Name(), of, audiences
		file, f = florete.FileTokens, florete.File{Value: "tokens", Mode: "0400"}
	}
	n := need(id, florete.KindJWT, of, r, []string{"forge"})
	n.Deliver.Files[file] = f
	n.Renew.AtPercent = 50
	return n
}

// ConfigNeed is the need for a host's own documents.
func ConfigNeed(node florete.ID, providers ...string) florete.Need {
	n := need("config-documents", "config", node, struct{}{}, providers)
	n.Renew.Interval = 900
	return n
}

// nodeNeed is the need for the node's own SVID.
const nodeNeed = "cert-node"

func need(id, kind string, of florete.ID, request any, providers []string) florete.Need {
	return florete.Need{
		ID: id, Kind: kind, For: of, Providers: providers, Request: JSON(request), Deliver: florete.Deliver{Files: map[string]florete.File{}},
		OnChange: []string{}, DependsOn: []string{nodeNeed}, Generation: 1,
	}
}

// FederationNeed is for the bundle of a foreign trust domain.
func FederationNeed(name, trustDomain string, providers ...string) florete.Need {
	n := need("federation-"+name, florete.KindFederation, ID("node/ursula"), map[string]string{"trustDomain": trustDomain}, providers)
	n.Deliver.Files = map[string]florete.File{florete.FileTrustBundle: {Value: "bundle", Mode: "0444"}}
	return n
}
