// Package caller determines which process of this host is behind a connection, by its account and
// systemd unit, and under which identity the process acts.
package caller

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/nss"
	"github.com/florete/florete/internal/spiffe"
)

// Process identifies the process behind a connection, as known to the kernel.
type Process struct {
	UID    uint32
	Cgroup uint64 // ID of its control group (version 2); zero if not known
}

// Table maps processes to the identities under which they act. The zero Table is empty.
type Table struct{ rows []row }

type row struct {
	id       spiffe.ID
	uids     []uint32
	units    []string
	workload bool
}

// has reports whether the process is among the row's callers, by its account or its unit.
func (r row) has(p Process) bool {
	return slices.Contains(r.uids, p.UID) || slices.ContainsFunc(r.units, p.inUnit)
}

// NewTable compiles callers and resolves their account names. An account that does not exist is
// reported as a problem; all other callers are in the table.
func NewTable(callers []document.Caller) (Table, []error) {
	var t Table
	var problems []error
	var names []string
	for _, c := range callers {
		names = append(names, c.Users...)
	}
	accounts := nss.LookupAll(names)
	for _, c := range callers {
		r := row{c.ID, slices.Clone(c.UIDs), c.Units, c.Workload}
		for _, name := range c.Users {
			uid, err := uidOf(accounts[name])
			if err != nil {
				problems = append(problems, fmt.Errorf("caller %s: %w", c.ID, err))
				continue
			}
			r.uids = append(r.uids, uid)
		}
		t.rows = append(t.rows, r)
	}
	return t, problems
}

// LookupUser returns the uid of an account of this host.
func LookupUser(name string) (uint32, error) {
	u, err := nss.Lookup(name)
	return uidOf(nss.Found{User: u, Err: err})
}

func uidOf(f nss.Found) (uint32, error) {
	if f.Err != nil {
		return 0, f.Err
	}
	uid, err := strconv.ParseUint(f.User.Uid, 10, 32)
	return uint32(uid), err
}

// Identity returns the identity of the first caller that includes the process.
func (t Table) Identity(p Process) (spiffe.ID, bool) {
	for _, r := range t.rows {
		if r.has(p) {
			return r.id, true
		}
	}
	return spiffe.ID{}, false
}

// UIDs returns the accounts that may act as one of ids. It returns accounts whose first caller is
// one of ids or, if all is set, every account that is named there.
func (t Table) UIDs(ids []spiffe.ID, all bool) (uids []uint32) {
	for _, r := range t.rows {
		for _, uid := range r.uids {
			first, _ := t.Identity(Process{UID: uid})
			if slices.Contains(ids, r.id) && (all || first == r.id) {
				uids = append(uids, uid)
			}
		}
	}
	slices.Sort(uids)
	return slices.Compact(uids)
}

// MayAct reports whether the process is among the callers of id.
func (t Table) MayAct(p Process, id spiffe.ID) bool {
	return slices.ContainsFunc(t.rows, func(r row) bool { return r.id == id && r.has(p) })
}

// Workload returns the identities whose private keys the process may have, in the order of callers.
func (t Table) Workload(p Process) (ids []spiffe.ID) {
	for _, r := range t.rows {
		if r.workload && r.has(p) {
			ids = append(ids, r.id)
		}
	}
	return ids
}
