package document

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/internal/unixtime"
)

// Policy contains what one provider host may answer. A request without a grant is
// refused.
type Policy struct {
	Cluster     string                     `json:"cluster"`
	Host        string                     `json:"host"`
	TrustDomain string                     `json:"trustDomain"`
	Trust       Trust                      `json:"trust"`
	Provider    map[string]Listening       `json:"provider"`            // identity and addresses of the process of each kind
	Devices     []Device                   `json:"devices"`             // nodes named in grants, sorted by ID
	Kinds       map[string]json.RawMessage `json:"kinds"`               // settings of each kind
	Grants      []Grant                    `json:"grants"`              // sorted by caller, then need
	Operators   Operators                  `json:"operators,omitempty"` // who may call ControlService
	Cache       Operators                  `json:"cache,omitempty"`     // who may call CacheService
	Rollout     *Rollout                   `json:"rollout,omitempty"`   // waves of a rollout; nil to offer a version to all hosts at once
	Store       *SharedStore               `json:"store,omitempty"`     // nil if each process has a store of its own
}

// SharedStore is the state store that the provider hosts of a cluster share.
type SharedStore struct {
	Kind        string              `json:"kind"`        // etcd
	Endpoints   []string            `json:"endpoints"`   // URLs of the members, those of this host first
	Replicas    map[string][]Device `json:"replicas"`    // nodes that run each kind of this host, sorted by ID
	KeyLifetime int64               `json:"keyLifetime"` // lifetime of the sealing keys in seconds; 0 if only an operator rotates them
	Member      *StoreMember        `json:"member,omitempty"`

	// From names, for each kind of this host, the host whose local store held the state before it
	// is moved to the shared store. A kind without an entry has no earlier state.
	From map[string]string `json:"from,omitempty"`
}

// StoreMember is the member of the shared store that runs on this host.
type StoreMember struct {
	Name    string   `json:"name"`
	Clients Called   `json:"clients"`
	Peers   Called   `json:"peers"`
	Cluster []string `json:"cluster"` // name=URL of each member
}

// Called contains the addresses on which a server listens, and the URLs at which others call it.
type Called struct {
	Listen []string `json:"listen"`
	Called []string `json:"called"`
}

// Operators lists who may call a reserved service of the host, sorted by ID.
type Operators []Operator

// Access returns the access of id at a time, or "" if it has none. After Until, a writer may still
// read; the forwarder enforces the end of read access.
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

// Operator is an identity that may call a reserved service.
type Operator struct {
	ID     spiffe.ID     `json:"id"`
	Access Access        `json:"access"`
	Until  unixtime.Time `json:"until,omitzero"` // end of write access; zero for none
}

// Access is a level of access of an operator.
type Access string

// Levels of access. Write access includes read access.
const (
	AccessRead  Access = "read"
	AccessWrite Access = "write"
)

// Listening contains the identity of the process of a kind, and the TCP addresses on which it
// listens: host:port, or :port for all addresses.
type Listening struct {
	ID     spiffe.ID `json:"id"`
	Listen []string  `json:"listen"`
}

// Device is a node and its SSH host key (authorized_keys form). The node proves itself with the key
// when it enrols and whenever it requests certificates or secrets. The key is empty if Joins is
// set.
type Device struct {
	ID         spiffe.ID `json:"id"`
	SSHHostKey string    `json:"sshHostKey,omitempty"`
	Joins      bool      `json:"joins,omitempty"` // it proves itself by an admitted device key
}

// Grant lets Caller request one need, with exactly these parameters and this generation.
type Grant struct {
	Caller     spiffe.ID       `json:"caller"`
	Need       string          `json:"need"`
	Kind       string          `json:"kind"`
	Request    json.RawMessage `json:"request"`
	Generation int             `json:"generation"`
}
