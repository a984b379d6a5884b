// Package caller finds the process of this host that made a local connection, and decides under
// which identity the process acts. The kernel tells it the process. The manifest maps the process
// to an identity by the process's Unix account and systemd unit.
package caller

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/nss"
	"github.com/florete/florete/internal/spiffe"
)

// Process identifies the process behind a local connection by its account and its control group, as
// the kernel reports them.
type Process struct {
	UID    uint32
	Cgroup uint64 // ID of its control group (version 2); zero if unknown
}

// Table finds the SPIFFE ID of a local process. It contains the accounts and systemd units to which
// the manifest gives a SPIFFE ID. The zero Table contains no callers.
type Table struct{ rows []row }

type row struct {
	id       spiffe.ID
	uids     []uint32
	units    []string
	workload bool
}

// has reports whether a process matches the row, by its account or by its unit.
func (r row) has(p Process) bool {
	return slices.Contains(r.uids, p.UID) || slices.ContainsFunc(r.units, p.inUnit)
}

// NewTable returns the Table of the given callers, and looks up the uids of the accounts that they
// name. For each account that cannot be found, it returns an error, and the Table does not contain
// that account.
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

// LookupUser returns the uid of the Unix account with the given name on this host. It returns an
// error if there is no such account.
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

// Identity returns the SPIFFE ID of the first caller in the table that matches a process. It
// returns false if no caller matches.
func (t Table) Identity(p Process) (spiffe.ID, bool) {
	for _, r := range t.rows {
		if r.has(p) {
			return r.id, true
		}
	}
	return spiffe.ID{}, false
}

// UIDs returns the uids of the accounts whose processes may act under one of the given IDs, sorted
// and without duplicates. An account can be named by several callers. Then only the first of them
// counts, unless all is true.
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

// MayAct reports whether the process may act under the given identity.
func (t Table) MayAct(p Process, id spiffe.ID) bool {
	return slices.ContainsFunc(t.rows, func(r row) bool { return r.id == id && r.has(p) })
}

// Workload returns the SPIFFE IDs whose private keys a process may get from the Workload API, in
// the order of the callers in the manifest.
func (t Table) Workload(p Process) (ids []spiffe.ID) {
	for _, r := range t.rows {
		if r.workload && r.has(p) {
			ids = append(ids, r.id)
		}
	}
	return ids
}
