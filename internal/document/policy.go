package document

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/internal/unixtime"
)

// Policy is the document that says which requests one provider host may grant. The provider host
// refuses every request for which the policy has no grant.
type Policy struct {
	Cluster     string                     `json:"cluster"`
	Host        string                     `json:"host"`
	TrustDomain string                     `json:"trustDomain"`
	Trust       Trust                      `json:"trust"`
	Provider    map[string]Listening       `json:"provider"`            // identity and addresses of the process of each kind
	Devices     []Device                   `json:"devices"`             // nodes named in grants, sorted by ID
	Kinds       map[string]json.RawMessage `json:"kinds"`               // settings of each kind
	Grants      []Grant                    `json:"grants"`              // sorted by caller, then need
	Operators   Operators                  `json:"operators,omitempty"` // identities that may call ControlService
	// Requests describes the roles that users may request for some hours.
	Requests map[string]RequestPolicy `json:"requests,omitempty"`
	Cache    Operators                `json:"cache,omitempty"`   // identities that may call CacheService
	Rollout  *Rollout                 `json:"rollout,omitempty"` // waves of a rollout; if nil, all hosts are offered a version at once
	Store    *SharedStore             `json:"store,omitempty"`   // nil if each provider process has its own state store
}

// RequestPolicy says who may request a role for some hours, and which hosts receive the grants for it.
type RequestPolicy struct {
	By        []spiffe.ID `json:"by"` // sorted
	Most      int         `json:"most"`
	Approvers []Approver  `json:"approvers"` // sorted by ID
	Hosts     []string    `json:"hosts"`     // sorted
}

// Request returns the rules for grants, as manifests contain them.
func (r RequestPolicy) Request() Request { return Request{r.Most, r.Approvers} }

// SharedStore tells a provider host how to use the state store that all provider hosts of a cluster
// share.
type SharedStore struct {
	Kind        string              `json:"kind"`        // etcd
	Endpoints   []string            `json:"endpoints"`   // URLs of the members, those of this host first
	Replicas    map[string][]Device `json:"replicas"`    // nodes that run each kind of this host, sorted by ID
	KeyLifetime int64               `json:"keyLifetime"` // lifetime of the sealing keys in seconds; 0 if only an operator rotates them
	Member      *StoreMember        `json:"member,omitempty"`

	// From is used to move state from local stores to the shared store. It maps each kind of need
	// that this host answers to the host whose local store contains the state of the kind. A kind
	// without an entry has no earlier state.
	From map[string]string `json:"from,omitempty"`
}

// StoreMember configures the member of the shared state store on this provider host.
type StoreMember struct {
	Name    string   `json:"name"`
	Clients Called   `json:"clients"`
	Peers   Called   `json:"peers"`
	Cluster []string `json:"cluster"` // name=URL of each member
}

// Called contains two kinds of addresses of a server: those on which the server listens, and the
// URLs by which other programs call it.
type Called struct {
	Listen []string `json:"listen"`
	Called []string `json:"called"`
}

// Operators contains the identities that may call a reserved service of a provider host, sorted by
// ID. A reserved service is defined by the product itself, such as the operators' API.
type Operators []Operator

// Access returns the access that an identity has at the time now, or "" if it has none. After
// Operator.Until, an operator with write access can still read. Access does not check the end of
// read access, which the forwarder enforces.
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

// Operator is an identity that may call a reserved service of a provider host, such as the
// operators' API. Access says whether it may only read.
type Operator struct {
	ID     spiffe.ID     `json:"id"`
	Access Access        `json:"access"`
	Until  unixtime.Time `json:"until,omitzero"` // end of write access; zero for none
}

// Access is the access of an operator to a reserved service of a provider host: reading only, or
// writing too.
type Access string

// Levels of access. Write access includes read access.
const (
	AccessRead  Access = "read"
	AccessWrite Access = "write"
)

// Listening contains the SPIFFE ID of the provider process for one kind of need, and the TCP
// addresses on which the process listens: host:port, or :port for all addresses.
type Listening struct {
	ID     spiffe.ID `json:"id"`
	Listen []string  `json:"listen"`
}

// Device contains the key with which a node signs, when it enrols and in every request for
// certificates or secrets. It is the SSH host key of the node, in authorized_keys form. If Joins is
// set, there is no such key, and the node signs with a device key that an operator has admitted.
type Device struct {
	ID         spiffe.ID `json:"id"`
	SSHHostKey string    `json:"sshHostKey,omitempty"`
	Joins      bool      `json:"joins,omitempty"` // true if the node signs with an admitted device key
}

// Grant permits the identity Caller to request one need from the provider. The request must have
// exactly the parameters and the generation of the grant.
type Grant struct {
	Caller     spiffe.ID       `json:"caller"`
	Need       string          `json:"need"`
	Kind       string          `json:"kind"`
	Request    json.RawMessage `json:"request"`
	Generation int             `json:"generation"`
}
