// Package upstream connects the forwarder to the services on its host. It checks that the socket of
// a service belongs to the expected account. Without the check, a process that takes the port of a
// stopped service would receive the service's connections.
//
// The owner of a TCP listener is looked up before and after connecting. If both lookups find the
// same socket, no other process can have owned the address in between, so the connection goes to
// that listener. The owner is not looked up if the upstream is on another machine, or in another
// network namespace with an address of its own. There, the network identifies the upstream.
package upstream

import (
	"fmt"
	"os"

	"github.com/florete/florete/agent/forward/caller"
	"github.com/florete/florete/internal/sockdiag"
)

// Owner says which accounts may run the local program behind a published service, the upstream.
// With it, Dial and Peer refuse a program of another account that listens on the address of the
// upstream.
type Owner struct {
	account string // empty for any system account
	uid     uint32
	known   bool
}

// NewOwner returns the Owner for a service that runs as the given account. If account is empty, any
// system account may run the upstream. If the account does not exist, NewOwner returns an error,
// and an Owner that allows only root and the forwarder.
func NewOwner(account string) (Owner, error) {
	o := Owner{account: account}
	if account == "" {
		return o, nil
	}
	uid, err := caller.LookupUser(account)
	if err != nil {
		return o, err
	}
	o.uid, o.known = uid, true
	return o, nil
}

// Range is a range of user IDs, including both ends.
type Range = sockdiag.Range

// UIDs returns the ranges of user IDs that may own the upstream's socket. They are root, the
// forwarder with the given user ID, and the accounts of the owner. The forwarder is allowed because
// it has the private key of the service anyway.
func (o Owner) UIDs(forwarder uint32) []Range {
	uids := []Range{{}, {First: forwarder, Last: forwarder}}
	switch {
	case o.account == "":
		return append(uids, sockdiag.SystemAccounts...)
	case o.known:
		return append(uids, Range{First: o.uid, Last: o.uid})
	}
	return uids
}

// Is reports whether uid is the user ID of the account that the service runs as. It returns false
// if any system account may run the upstream.
func (o Owner) Is(uid uint32) bool { return o.known && o.uid == uid }

// check returns a *ForeignError unless an account may own the upstream's socket at an address.
func (o Owner) check(addr string, uid uint32) error {
	for _, r := range o.UIDs(uint32(os.Geteuid())) {
		if r.First <= uid && uid <= r.Last {
			return nil
		}
	}
	return &ForeignError{Addr: addr, UID: uid, Want: o.account}
}

// ForeignError means that the socket of an upstream belongs to an account that is not allowed to
// run the service.
type ForeignError struct {
	Addr string
	UID  uint32 // owner of the socket
	Want string // expected account; empty for any system account
}

func (e *ForeignError) Error() string {
	if e.Want == "" {
		return fmt.Sprintf("upstream %s: the socket is uid %d's, want an account of the system: write the service's user in the topology", e.Addr, e.UID)
	}
	return fmt.Sprintf("upstream %s: the socket is uid %d's, want %s's, as the service's user in the topology", e.Addr, e.UID, e.Want)
}
