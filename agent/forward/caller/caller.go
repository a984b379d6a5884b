// Package caller finds out which local process user is behind a TCP connection,
// and which identity that user acts under.
package caller

import (
	"fmt"
	"os/user"
	"slices"
	"strconv"

	"github.com/florete/florete"
)

// Table says which uids act under which identities. The zero Table knows nobody.
type Table struct{ rows []row }

type row struct {
	id   florete.ID
	uids []uint32
}

// NewTable resolves account names to uids. An account that does not exist is a
// problem, and the other callers are in the table all the same.
func NewTable(callers []florete.Caller) (Table, []error) {
	var t Table
	var problems []error
	for _, c := range callers {
		r := row{c.ID, slices.Clone(c.UIDs)}
		for _, name := range c.Users {
			uid, err := LookupUser(name)
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

// LookupUser is the uid of an account of this host.
func LookupUser(name string) (uint32, error) {
	u, err := user.Lookup(name)
	if err != nil {
		return 0, err
	}
	uid, err := strconv.ParseUint(u.Uid, 10, 32)
	return uint32(uid), err
}

// Identity is the identity of the first caller that has the uid.
func (t Table) Identity(uid uint32) (florete.ID, bool) {
	for _, r := range t.rows {
		if slices.Contains(r.uids, uid) {
			return r.id, true
		}
	}
	return florete.ID{}, false
}

// UIDs are those that may act as one of ids: as those whose first caller it is, or, with
// all, as any that names them.
func (t Table) UIDs(ids []florete.ID, all bool) (uids []uint32) {
	for _, r := range t.rows {
		for _, uid := range r.uids {
			first, _ := t.Identity(uid)
			if slices.Contains(ids, r.id) && (all || first == r.id) {
				uids = append(uids, uid)
			}
		}
	}
	slices.Sort(uids)
	return slices.Compact(uids)
}

// MayAct reports whether the uid is among the callers of id.
func (t Table) MayAct(uid uint32, id florete.ID) bool {
	return slices.ContainsFunc(t.rows, func(r row) bool {
		return r.id == id && slices.Contains(r.uids, uid)
	})
}
