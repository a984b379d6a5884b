package florete

import "encoding/json"

// Policy is what one provider host may answer. A request that no grant names is
// refused.
type Policy struct {
	Cluster     string                     `json:"cluster"`
	Host        string                     `json:"host"`
	TrustDomain string                     `json:"trustDomain"`
	Trust       Trust                      `json:"trust"`
	Provider    Listening                  `json:"provider"` // itself
	Enrol       []Enrollee                 `json:"enrol"`    // sorted by ID; empty without kind "cert"
	Kinds       map[string]json.RawMessage `json:"kinds"`    // settings of each kind it runs
	Grants      []Grant                    `json:"grants"`   // sorted by caller, need
}

// Listening is who a provider is, and the TCP host:port, or :port of all addresses, on
// which it listens.
type Listening struct {
	ID     ID       `json:"id"`
	Listen []string `json:"listen"`
}

// Enrollee is a node that may enrol, and the SSH host key (authorized_keys form)
// that its proof must be made with.
type Enrollee struct {
	ID         ID     `json:"id"`
	SSHHostKey string `json:"sshHostKey"`
}

// Grant lets Caller ask for one need with exactly these parameters.
type Grant struct {
	Caller  ID              `json:"caller"`
	Need    string          `json:"need"`
	Kind    string          `json:"kind"`
	Request json.RawMessage `json:"request"`
}
