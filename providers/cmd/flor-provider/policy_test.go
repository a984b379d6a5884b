package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostdir"
	"github.com/florete/florete/tests/kit"
)

// policyOf is the policy of drhorrible, which runs kinds and lets ursula enrol.
func policyOf(dir, address, hostKey string, kinds []string) (document.Policy, error) {
	crt, err := os.ReadFile(filepath.Join(dir, "ca.crt"))
	if err != nil {
		return document.Policy{}, err
	}
	p := document.Policy{
		Cluster: "demo", Host: "drhorrible", TrustDomain: kit.Domain,
		Trust:    document.Trust{Roots: []string{string(crt)}, SigningKeys: []string{signing.ToPublicKey().String()}},
		Provider: map[string]document.Listening{},
		Kinds:    map[string]json.RawMessage{},
	}
	for _, k := range kinds {
		p.Provider[k] = document.Listening{ID: kit.ProviderID("drhorrible", k), Listen: []string{address}}
		p.Kinds[k] = json.RawMessage(map[string]string{
			"cert": `{"lifetime":3600}`, "config": `{}`, "oidc": `{"issuer":"http://auth.demo.flor.rete"}`,
			"token": `{"issuer":"http://tokens.demo.flor.rete","generation":1,"tenants":{"acme":{"namespaces":["payments"],"issuers":{},"lifetime":900,"tokensPerMinute":60,
				"runtimeRules":{"policies":10,"groupings":10},"groupings":[],
				"policies":[{"subject":"spiffe://demo.flor/service/wiki","action":"stream.publish","object":"stream:acme/payments/*"}]}}}`,
			"mailbox": `{"run":"/usr/local/lib/florete/mailbox","values":["password"]}`,
		}[k])
	}
	if hostKey != "" {
		ursula := kit.ID("node/ursula")
		p.Devices = append(p.Devices, document.Device{ID: ursula, SSHHostKey: hostKey})
		p.Grants = append(p.Grants, document.Grant{Caller: ursula, Need: "cert-node", Kind: "cert", Request: kit.JSON(map[string]any{"id": ursula}), Generation: 1})
		for i := range 8 {
			p.Grants = append(p.Grants, document.Grant{Caller: ursula, Need: fmt.Sprintf("cert-service-s%d", i), Kind: "cert",
				Request: kit.JSON(map[string]any{"id": kit.ID(fmt.Sprintf("service/s%d", i))}), Generation: 1})
		}
	}
	return p, nil
}

// policy puts in force the policy of the script's provider, on a port that is free.
func policy(dir string, kinds []string) error {
	p, err := policyOf(dir, kit.Address(), "", kinds)
	if err != nil {
		return err
	}
	p.Operators = document.Operators{{ID: kit.ID("user/alice"), Access: document.AccessWrite}}
	enforce(dir, p)
	return nil
}

// enforce puts a policy in force, as activation does.
func enforce(dir string, p document.Policy) {
	kit.Swap(hostdir.Current(hostdir.Layout(filepath.Join(dir, "activation")).Documents()), kit.Document(1000, p).Files())
}
