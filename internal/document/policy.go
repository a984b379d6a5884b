package document

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/internal/unixtime"
)

// Policy is what one provider host may answer. A request that no grant names is
// refused.
type Policy struct {
	Cluster     string                     `json:"cluster"`
	Host        string                     `json:"host"`
	TrustDomain string                     `json:"trustDomain"`
	Trust       Trust                      `json:"trust"`
	Provider    map[string]Listening       `json:"provider"`            // the process of each kind it runs
	Devices     []Device                   `json:"devices"`             // of the nodes that grants name, sorted by ID
	Kinds       map[string]json.RawMessage `json:"kinds"`               // settings of each kind it runs
	Grants      []Grant                    `json:"grants"`              // sorted by caller, need
	Operators   Operators                  `json:"operators,omitempty"` // of ControlService
	Cache       Operators                  `json:"cache,omitempty"`     // of CacheService
	Rollout     *Rollout                   `json:"rollout,omitempty"`   // of what it publishes; nil for to all at once
	Store       *SharedStore               `json:"store,omitempty"`     // nil where each process has a store of its own
}

// SharedStore is the store that the provider hosts of a cluster share.
type SharedStore struct {
	Kind        string              `json:"kind"`        // etcd
	Endpoints   []string            `json:"endpoints"`   // URLs of its members, those of this host first
	Replicas    map[string][]Device `json:"replicas"`    // of each kind that this host runs: the nodes that run it, sorted by ID
	KeyLifetime int64               `json:"keyLifetime"` // of the sealing keys, in seconds; 0 where only an operator rotates them
	Member      *StoreMember        `json:"member,omitempty"`

	// From are the hosts whose files have the state of kinds that this host runs, by kind,
	// until it has moved here; none where there never was any.
	From map[string]string `json:"from,omitempty"`
}

// StoreMember is the member of a shared store that runs on the host.
type StoreMember struct {
	Name    string   `json:"name"`
	Clients Called   `json:"clients"`
	Peers   Called   `json:"peers"`
	Cluster []string `json:"cluster"` // name=URL of each member
}

// Called are the URLs at which something listens, and at which it is called.
type Called struct {
	Listen []string `json:"listen"`
	Called []string `json:"called"`
}

// Operators are who may call a reserved service of the host, sorted by ID.
type Operators []Operator

// Access is what somebody may do there now, empty for nothing. When somebody may no longer
// read, the forwarder knows.
func (o Operators) Access(id spiffe.ID, now time.Time) Access {
	i := slices.IndexFunc(o, func(o Operator) bool { return o.ID == id })
	switch {
	case i < 0:
		return ""
	case !o[i].Until.IsZero() && !now.Before(o[i].Until.Time):
		return AccessRead
	}
	return o[i].Access
}

// Operator is one of them.
type Operator struct {
	ID     spiffe.ID     `json:"id"`
	Access Access        `json:"access"`
	Until  unixtime.Time `json:"until,omitzero"` // when writing ends; zero for never
}

// Access is what an operator may do.
type Access string

// Who may write may read.
const (
	AccessRead  Access = "read"
	AccessWrite Access = "write"
)

// Listening is who the process of a kind is, and the TCP host:port, or :port of all
// addresses, on which it listens.
type Listening struct {
	ID     spiffe.ID `json:"id"`
	Listen []string  `json:"listen"`
}

// Device is a node and its SSH host key (authorized_keys form), with which it proves
// itself when it enrols and whenever it requests certificates or secrets; none where it
// Joins.
type Device struct {
	ID         spiffe.ID `json:"id"`
	SSHHostKey string    `json:"sshHostKey,omitempty"`
	Joins      bool      `json:"joins,omitempty"` // by an Admission
}

// Grant lets Caller request one need, with exactly these parameters and in exactly this
// generation.
type Grant struct {
	Caller     spiffe.ID       `json:"caller"`
	Need       string          `json:"need"`
	Kind       string          `json:"kind"`
	Request    json.RawMessage `json:"request"`
	Generation int             `json:"generation"`
}
