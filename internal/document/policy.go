package document

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/internal/unixtime"
)

// Policy is the document that lists the requests which one provider host may answer. The provider
// host refuses every request without a grant.
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
	Rollout     *Rollout                   `json:"rollout,omitempty"`   // waves of a rollout; if nil, all hosts are offered a version at once
	Store       *SharedStore               `json:"store,omitempty"`     // nil if each process has a store of its own
}

// SharedStore describes the state store that all provider hosts of a cluster share.
type SharedStore struct {
	Kind        string              `json:"kind"`        // etcd
	Endpoints   []string            `json:"endpoints"`   // URLs of the members, those of this host first
	Replicas    map[string][]Device `json:"replicas"`    // nodes that run each kind of this host, sorted by ID
	KeyLifetime int64               `json:"keyLifetime"` // lifetime of the sealing keys in seconds; 0 if only an operator rotates them
	Member      *StoreMember        `json:"member,omitempty"`

	// From is for moving state from local stores to the shared store. For each kind of this host it
	// names the host whose local store has the kind's state. A kind without an entry has no earlier
	// state.
	From map[string]string `json:"from,omitempty"`
}

// StoreMember configures the member of the shared state store that runs on this host.
type StoreMember struct {
	Name    string   `json:"name"`
	Clients Called   `json:"clients"`
	Peers   Called   `json:"peers"`
	Cluster []string `json:"cluster"` // name=URL of each member
}

// Called contains the addresses on which a server listens, and the URLs at which other programs
// call the server.
type Called struct {
	Listen []string `json:"listen"`
	Called []string `json:"called"`
}

// Operators lists the identities that may call a reserved service of a provider host, sorted by ID.
type Operators []Operator

// Access returns the level of access that id has at a time, or "" if it has none. After
// Operator.Until, an operator with write access may still read. The forwarder enforces the end of
// read access.
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

// Operator is an identity that may call a reserved service of a provider host, with its level of
// access.
type Operator struct {
	ID     spiffe.ID     `json:"id"`
	Access Access        `json:"access"`
	Until  unixtime.Time `json:"until,omitzero"` // end of write access; zero for none
}

// Access is an operator's level of access to a reserved service.
type Access string

// Levels of access. Write access includes read access.
const (
	AccessRead  Access = "read"
	AccessWrite Access = "write"
)

// Listening contains the identity of the provider process of one kind, and the TCP addresses on
// which the process listens: host:port, or :port for all addresses.
type Listening struct {
	ID     spiffe.ID `json:"id"`
	Listen []string  `json:"listen"`
}

// Device is a node and its SSH host key (authorized_keys form). The node proves itself with this
// key when it enrols, and whenever it requests certificates or secrets. If Joins is set, the key is
// empty, and the node uses an admitted device key instead.
type Device struct {
	ID         spiffe.ID `json:"id"`
	SSHHostKey string    `json:"sshHostKey,omitempty"`
	Joins      bool      `json:"joins,omitempty"` // it proves itself with an admitted device key
}

// Grant permits Caller to request one need, with exactly these parameters and this generation.
type Grant struct {
	Caller     spiffe.ID       `json:"caller"`
	Need       string          `json:"need"`
	Kind       string          `json:"kind"`
	Request    json.RawMessage `json:"request"`
	Generation int             `json:"generation"`
}
