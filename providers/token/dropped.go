package token

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/internal/unixtime"
	"github.com/florete/florete/providers/announced"
	"github.com/florete/florete/providers/server"
	"github.com/florete/florete/providers/store"
)

// These are key prefixes in the store. The values record since when the policy has no tenant with a
// name, or no runtime rules for the tenant.
const (
	droppedPrefix      = "token/dropped/tenant/"
	droppedRulesPrefix = "token/dropped/rules/"
)

// grace is the time for which the keys and rules of a tenant are kept after the flake dropped the
// tenant.
const grace = 30 * 24 * time.Hour

// codeInUse is the code of the refusal to delete a tenant that may be in use.
var codeInUse = hostapi.Code{Name: "in-use", Class: hostapi.Denied}

// Kept describes a tenant that has data in the state store, even if the flake no longer contains
// that tenant.
type Kept struct {
	Tenant       string        `json:"tenant"`
	Policies     int           `json:"policies"`  // number of policies, from the flake and from run time
	Groupings    int           `json:"groupings"` // number of groupings, likewise
	RuntimeRules *Quota        `json:"runtimeRules,omitempty"`
	Dropped      unixtime.Time `json:"dropped,omitzero"` // time at which the flake dropped the tenant; zero while the flake has it
	Until        unixtime.Time `json:"until,omitzero"`   // time at which the data of the tenant is deleted
}

// Tenants is the answer to GET /v1/tenants. It lists all tenants that have data in the state store.
type Tenants struct {
	Tenants []Kept `json:"tenants"` // sorted by name
}

// Deletion is the body of POST /v1/tenants/{tenant}/delete, a request to delete all data of a
// tenant.
type Deletion struct {
	Force bool `json:"force"` // delete the tenant even if its last tokens may still be in use
}

// stored returns the names of the tenants that have data in the store. The value is true for a
// tenant that has rules.
func (t tenants) stored(ctx context.Context) (map[string]bool, error) {
	names := map[string]bool{}
	for prefix, below := range map[string]bool{keysPrefix: false, rulesPrefix: true} {
		for after := ""; ; {
			entries, err := t.store.Page(ctx, prefix, after, 1)
			if err != nil {
				return nil, err
			}
			if len(entries) == 0 {
				break
			}
			after = entries[0].Key
			name, _, _ := strings.Cut(strings.TrimPrefix(after, prefix), "/")
			names[name] = names[name] || below
			if below {
				after = prefix + name + "0" // which comes after all that begin with prefix + name + "/"
			}
		}
	}
	return names, nil
}

// since reads the time at which the policy dropped a tenant or its runtime rules.
func (t tenants) since(ctx context.Context, at string) (since time.Time, cond store.Cond, err error) {
	e, err := store.Find(ctx, t.store, at)
	cond = store.Cond{Key: at, Modified: e.Modified}
	if err != nil || e.Modified == 0 {
		return since, cond, err
	}
	n, err := strconv.ParseInt(string(e.Value), 10, 64)
	if err != nil {
		return since, cond, fmt.Errorf("%s: %w", at, err)
	}
	return time.Unix(n, 0), cond, nil
}

// sweep records which tenants the policy has dropped, and deletes the tenants whose grace is over.
func (t *Tokens) sweep(ctx context.Context, now time.Time, p *Policy) error {
	names, err := t.tenants.stored(ctx)
	if err != nil {
		return err
	}
	for name, hasRules := range names {
		tenant := p.tenants[name]
		for at, of := range map[string]struct {
			dropped bool
			forget  func(context.Context, string, store.Cond, server.Row) error
			message string
		}{
			droppedPrefix + name:      {tenant == nil, t.tenants.forget, "the flake dropped tenant %s 30 days ago: its keys and rules are gone"},
			droppedRulesPrefix + name: {hasRules && tenant != nil && tenant.RuntimeRules == nil, t.tenants.forgetRules, "tenant %s has the rules of the flake alone since 30 days: those of run time are gone"},
		} {
			since, cond, err := t.tenants.since(ctx, at)
			var commit store.Op
			switch {
			case err != nil:
				return err
			case of.dropped && since.IsZero():
				commit = store.Put(at, []byte(strconv.FormatInt(now.Unix(), 10)))
			case of.dropped && now.Sub(since) > grace:
				row := server.Row{Time: now.UTC(), Kind: Name, Outcome: server.Changed, Code: CodeDelete, Message: fmt.Sprintf(of.message, name), Detail: map[string]string{"tenant": name}}
				err = of.forget(ctx, name, cond, row)
				if err == nil {
					row.Log(ctx, t.Logger)
				}
			case !of.dropped && !since.IsZero():
				commit = store.Delete(at)
			}
			if commit.Key != "" {
				_, err = t.Store.Commit(ctx, store.Txn{If: []store.Cond{cond}, Then: []store.Op{commit}})
			}
			if err != nil && !errors.Is(err, store.ErrConflict) {
				return err
			}
		}
	}
	return nil
}

// forget deletes all data of a tenant and writes an audit row. It does so only if a condition
// holds.
func (t tenants) forget(ctx context.Context, name string, cond store.Cond, row server.Row) error {
	if err := t.emptied(ctx, name, cond); err != nil {
		return err
	}
	_, err := t.store.Commit(ctx, store.Txn{If: []store.Cond{cond}, Then: []store.Op{
		store.Delete(keysPrefix + name), store.Delete(changesOf(name)), store.Delete(bootstrapped + name),
		store.Delete(droppedPrefix + name), store.Delete(droppedRulesPrefix + name), row.Op(),
	}})
	return err
}

// forgetRules deletes the runtime rules of a tenant. First administrators may then be named again.
func (t tenants) forgetRules(ctx context.Context, name string, cond store.Cond, row server.Row) error {
	if err := t.emptied(ctx, name, cond); err != nil {
		return err
	}
	_, err := t.store.Commit(ctx, store.Txn{If: []store.Cond{cond}, Then: []store.Op{
		store.Delete(changesOf(name)), store.Delete(bootstrapped + name), store.Delete(droppedRulesPrefix + name), row.Op(),
	}})
	return err
}

// emptied deletes the rules of a tenant, but not the key that each change of them writes. If it is
// interrupted, the next sweep continues.
func (t tenants) emptied(ctx context.Context, name string, cond store.Cond) error {
	for after := ""; ; {
		entries, err := t.store.Page(ctx, rulesOf(name), after, store.MaxOps)
		if err != nil || len(entries) == 0 {
			return err
		}
		txn := store.Txn{If: []store.Cond{cond}}
		for _, e := range entries {
			after = e.Key
			if e.Key != changesOf(name) {
				txn.Then = append(txn.Then, store.Delete(e.Key))
			}
		}
		if len(txn.Then) == 0 {
			continue
		}
		if _, err := t.store.Commit(ctx, txn); err != nil {
			return err
		}
	}
}

// list returns the tenants in the policy, and the tenants that still have data in the store.
func (t *Tokens) list(c *announced.Call) (any, error) {
	answer, ctx := Tenants{[]Kept{}}, c.R.Context()
	stored, err := t.tenants.stored(ctx)
	if err != nil {
		return nil, err
	}
	names, p := slices.Collect(maps.Keys(stored)), t.Policy()
	if p != nil {
		names = slices.AppendSeq(names, maps.Keys(p.tenants))
	}
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		k := Kept{Tenant: name}
		if p != nil && p.tenants[name] != nil {
			f, err := t.tenants.inForce(ctx, p.tenants[name])
			if err != nil {
				return nil, err
			}
			k.RuntimeRules = f.tenant.RuntimeRules
			for _, r := range f.all() {
				if r.Policy != nil {
					k.Policies++
				} else {
					k.Groupings++
				}
			}
		} else if since, _, err := t.tenants.since(ctx, droppedPrefix+name); err != nil {
			return nil, err
		} else if !since.IsZero() {
			k.Dropped, k.Until = unixtime.Of(since), unixtime.Of(since.Add(grace))
		}
		answer.Tenants = append(answer.Tenants, k)
	}
	return answer, nil
}

// delete deletes a tenant that the flake dropped, before its grace is over.
func (t *Tokens) delete(c *announced.Call) (any, error) {
	name, ctx := c.R.PathValue("tenant"), c.R.Context()
	c.Row.Code = CodeDelete
	var d Deletion
	if err := c.Body(maxBody, &d); err != nil {
		return nil, err
	}
	if _, err := t.named(name); err == nil {
		return nil, hostapi.Errorf(codeInUse, "tenant %s is the flake's: take tenants.%[1]s out there, and publish", name)
	}
	stored, err := t.tenants.stored(ctx)
	if err != nil {
		return nil, err
	}
	if _, is := stored[name]; !is {
		return nil, hostapi.Errorf(codeTenant, "nothing is kept of a tenant %.80q", name)
	}
	since, cond, err := t.tenants.since(ctx, droppedPrefix+name)
	if err != nil {
		return nil, err
	}
	if since.IsZero() { // not noted yet
		since = c.Row.Time
	}
	if ends := since.Add(longest); c.Row.Time.Before(ends) && !d.Force {
		return nil, hostapi.Errorf(codeInUse, "tokens of tenant %s may be in use until %s: delete it then, or with force", name, ends.UTC().Format(time.RFC3339))
	}
	row := c.Row
	row.Outcome, row.Message, row.Detail = server.Granted, fmt.Sprintf("the keys and rules of tenant %s are gone", name), map[string]string{"tenant": name}
	if err := t.tenants.forget(ctx, name, cond, row); errors.Is(err, store.ErrConflict) {
		return nil, hostapi.Errorf(hostapi.CodeBusy, "tenant %s changed at the same time", name).After(time.Second)
	} else if err != nil {
		return nil, err
	}
	row.Log(ctx, t.Logger)
	return Kept{Tenant: name, Dropped: unixtime.Of(since)}, nil
}
