// Package upstream connects to the services behind the forwarder, if the upstream's socket belongs
// to the expected account. Otherwise a process that takes a service's port while the service is
// down would receive its connections.
//
// The owner of a TCP listener is looked up before and after connecting. If both are the same
// socket, no other process can have owned the address in between, so the connection goes to that
// listener. The owner is not looked up for upstreams on another machine, or in another network
// namespace with an address of its own; there the network identifies the upstream.
package upstream

import (
	"fmt"
	"os"

	"github.com/florete/florete/agent/forward/caller"
	"github.com/florete/florete/internal/sockdiag"
)

// Owner describes the accounts that may own the socket of an upstream.
type Owner struct {
	account string // empty for any system account
	uid     uint32
	known   bool
}

// NewOwner returns the owner for an account, or for any system account if account is empty. If the
// account does not exist, the returned Owner accepts only root.
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

// Range is a range of uids, both ends included.
type Range = sockdiag.Range

// UIDs returns the accounts that may own the upstream: root, the forwarder's own account, which has
// the service's private key anyway, and the owner.
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

// Is reports whether uid is the account of the owner. It returns false if any system account is
// accepted.
func (o Owner) Is(uid uint32) bool { return o.known && o.uid == uid }

// check returns an error unless uid may own a socket at addr.
func (o Owner) check(addr string, uid uint32) error {
	for _, r := range o.UIDs(uint32(os.Geteuid())) {
		if r.First <= uid && uid <= r.Last {
			return nil
		}
	}
	return &ForeignError{Addr: addr, UID: uid, Want: o.account}
}

// ForeignError means that the socket of an upstream belongs to another account than that of its
// service.
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
