package florete

import "encoding/json"

// Policy is what one provider host may answer. A request that no grant names is
// refused.
type Policy struct {
	Cluster     string                     `json:"cluster"`
	Host        string                     `json:"host"`
	TrustDomain string                     `json:"trustDomain"`
	Trust       Trust                      `json:"trust"`
	Provider    map[string]Listening       `json:"provider"` // the process of each kind it runs
	Devices     []Device                   `json:"devices"`  // of the nodes that grants name, sorted by ID
	Kinds       map[string]json.RawMessage `json:"kinds"`    // settings of each kind it runs
	Grants      []Grant                    `json:"grants"`   // sorted by caller, need
}

// Listening is who the process of a kind is, and the TCP host:port, or :port of all
// addresses, on which it listens.
type Listening struct {
	ID     ID       `json:"id"`
	Listen []string `json:"listen"`
}

// Device is a node and its SSH host key (authorized_keys form), with which it proves
// itself when it enrols and whenever it requests certificates or secrets.
type Device struct {
	ID         ID     `json:"id"`
	SSHHostKey string `json:"sshHostKey"`
}

// Grant lets Caller request one need, with exactly these parameters and in exactly this
// generation.
type Grant struct {
	Caller     ID              `json:"caller"`
	Need       string          `json:"need"`
	Kind       string          `json:"kind"`
	Request    json.RawMessage `json:"request"`
	Generation int             `json:"generation"`
}
