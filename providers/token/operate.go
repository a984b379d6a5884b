package token

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/internal/unixtime"
	"github.com/florete/florete/providers/announced"
	"github.com/florete/florete/providers/server"
	"github.com/florete/florete/providers/store"
	"github.com/florete/florete/providers/token/rules"
)

// These are codes in the audit log for changes that operators make to tenants.
const (
	CodePolicyAdd      = "policy-add"
	CodePolicyRemove   = "policy-remove"
	CodeGroupingAdd    = "grouping-add"
	CodeGroupingRemove = "grouping-remove"
	CodeDelete         = "tenant-delete"
	CodeBootstrap      = "tenant-bootstrap"
)

// maxBody is the largest size of an operator's request in bytes. A rule with the longest names has
// less than 2 KiB.
const maxBody = 16 << 10

// TenantRules is the answer to GET /v1/tenants/{tenant}/rules. It contains only those rules of the
// tenant that the caller may view.
type TenantRules struct {
	Policies  []Rule `json:"policies"`
	Groupings []Rule `json:"groupings"`
}

// operate answers operators until ctx ends. Operators call through the API of kind config.
func (t *Tokens) operate(ctx context.Context) {
	change := func(path, code string, remove bool, decode func(*announced.Call) (Rule, error)) announced.Endpoint {
		return announced.Endpoint{Method: "POST", Path: path, Access: document.AccessWrite, Answer: func(c *announced.Call) (any, error) {
			c.Row.Code = code
			return t.change(c, remove, decode)
		}}
	}
	policy := func(c *announced.Call) (Rule, error) {
		r := Rule{Policy: new(rules.Policy)}
		return r, c.Body(maxBody, r.Policy)
	}
	grouping := func(c *announced.Call) (Rule, error) {
		r := Rule{Grouping: new(rules.Grouping)}
		return r, c.Body(maxBody, r.Grouping)
	}
	announced.RunOperators(ctx, announced.OperatorConfig{Socket: t.Control, Account: t.Operators, Policies: t.Policies, Audit: t.Audit, Logger: t.Logger},
		announced.Endpoint{Method: "GET", Path: "/v1/tenants", Access: document.AccessRead, Answer: t.list},
		announced.Endpoint{Method: "GET", Path: path("{tenant}") + "/rules", Access: document.AccessRead, Answer: t.rules},
		change(path("{tenant}")+"/policies", CodePolicyAdd, false, policy),
		change(path("{tenant}")+"/policies/remove", CodePolicyRemove, true, policy),
		change(path("{tenant}")+"/groupings", CodeGroupingAdd, false, grouping),
		change(path("{tenant}")+"/groupings/remove", CodeGroupingRemove, true, grouping),
		announced.Endpoint{Method: "POST", Path: path("{tenant}") + "/delete", Access: document.AccessWrite, Answer: t.delete})
}

// named returns the tenant that a request names. The tenant must be in the policy.
func (t *Tokens) named(name string) (*Tenant, error) {
	if p := t.Policy(); p != nil && p.tenants[name] != nil {
		return p.tenants[name], nil
	}
	return nil, hostapi.Errorf(codeTenant, "no tenant %.80q here", name)
}

// changeable returns the tenant with a name. It returns an error unless the rules of the tenant can
// change at run time.
func (t *Tokens) changeable(name string) (*Tenant, error) {
	tenant, err := t.named(name)
	if err == nil && tenant.RuntimeRules == nil {
		err = hostapi.Errorf(hostapi.CodeNotGranted, "tenant %s has the rules of the flake alone: write tenants.%[1]s.runtimeRules = true, and publish", name)
	}
	return tenant, err
}

// rules returns the rules of a tenant that the caller may view.
func (t *Tokens) rules(c *announced.Call) (any, error) {
	tenant, err := t.named(c.R.PathValue("tenant"))
	if err != nil {
		return nil, err
	}
	f, err := t.tenants.inForce(c.R.Context(), tenant)
	if err != nil {
		return nil, err
	}
	caller := announced.From(c.R.Context()).ID
	reach := f.reach(caller.String(), rules.View)
	if len(reach) == 0 {
		return nil, hostapi.Errorf(hostapi.CodeNotGranted, "tenant %s permits %s no %s: give it a policy with that action", tenant.name, caller, rules.View)
	}
	answer := TenantRules{[]Rule{}, []Rule{}}
	hidden := map[string]bool{} // by role
	for _, r := range f.all() {
		if r.Policy != nil {
			scope, err := f.scope(r)
			if err != nil {
				return nil, err
			}
			if _, outside := beyond(reach, scope); !outside {
				answer.Policies = append(answer.Policies, r)
			}
			continue
		}
		hide, known := hidden[r.Role]
		if !known {
			scope, err := f.scope(r)
			if err != nil {
				return nil, err
			}
			_, hide = beyond(reach, scope)
			hidden[r.Role] = hide
		}
		if !hide {
			answer.Groupings = append(answer.Groupings, r)
		}
	}
	return answer, nil
}

// change adds or removes a rule and writes an audit row. It does not change a rule that exists
// already.
func (t *Tokens) change(c *announced.Call, remove bool, decode func(*announced.Call) (Rule, error)) (any, error) {
	tenant, err := t.changeable(c.R.PathValue("tenant"))
	if err != nil {
		return nil, err
	}
	r, err := decode(c)
	if err != nil {
		return nil, err
	}
	caller := announced.From(c.R.Context()).ID.String()
	c.Row.Detail = map[string]string{"tenant": tenant.name}
	r.Origin, r.By, r.Added = OfRuntime, caller, unixtime.Of(c.Row.Time)
	for range store.Attempts {
		f, err := t.tenants.inForce(c.R.Context(), tenant)
		if err != nil {
			return nil, err
		}
		if err := f.admit(r, caller, remove); err != nil {
			return nil, err
		}
		i := slices.IndexFunc(f.added, func(has Rule) bool { return has.String() == r.String() })
		switch {
		case remove && i < 0:
			return nil, f.absent(r)
		case !remove && i >= 0:
			return f.added[i], nil
		case !remove:
			if err := f.room(r, 1); err != nil {
				return nil, err
			}
		}
		op, verb := store.Delete(r.key(tenant.name)), "no longer has at run time"
		if !remove {
			value, err := json.Marshal(r)
			if err != nil {
				return nil, err
			}
			op, verb = store.Put(r.key(tenant.name), value), "has at run time"
		}
		row := c.Row
		row.Outcome, row.Message = server.Granted, fmt.Sprintf("tenant %s %s %s", tenant.name, verb, r)
		_, err = t.Store.Commit(c.R.Context(), store.Txn{If: f.as, Then: []store.Op{op, store.Put(changesOf(tenant.name), []byte(op.Key)), row.Op()}})
		if errors.Is(err, store.ErrConflict) {
			continue
		}
		if err != nil {
			return nil, err
		}
		row.Log(c.R.Context(), t.Logger)
		if remove {
			return f.added[i], nil
		}
		return r, nil
	}
	return nil, hostapi.Errorf(hostapi.CodeBusy, "others change the same at the same time").After(time.Second)
}

// admit refuses a change that the caller may not make, and a rule of another tenant.
func (f *inForce) admit(r Rule, caller string, remove bool) error {
	// A rule whose names the flake dropped can still be removed.
	if err := r.check(f.tenant.names); err != nil && !remove {
		return malformed("tenant %s: %v", f.tenant.name, err)
	}
	action := rules.ManageGroupings
	if r.Policy != nil {
		action = rules.ManagePolicies
	}
	scope, err := f.scope(r)
	if err != nil {
		return malformed("%v", err)
	}
	reach := f.reach(caller, action)
	if o, outside := beyond(reach, scope); outside {
		return hostapi.Errorf(hostapi.CodeNotGranted, "tenant %s permits %s no %s on %s, which the %s is about: somebody who has it there can add it", f.tenant.name, caller, action, o, r)
	}
	return nil
}

// absent returns the error that tells why a rule cannot be removed.
func (f *inForce) absent(r Rule) error {
	if slices.ContainsFunc(f.all(), func(has Rule) bool { return has.String() == r.String() }) {
		return hostapi.Errorf(hostapi.CodeNotGranted, "%s: the flake's, which stays at run time: take it out of tenants.%s there, and publish", r, f.tenant.name)
	}
	return hostapi.Errorf(hostapi.CodeMissingInvalid, "%s: tenant %s has none such", r, f.tenant.name)
}

// room refuses rules that exceed the tenant's quota for rules of their type.
func (f *inForce) room(r Rule, more int) error {
	has, most, what := 0, f.tenant.RuntimeRules.Groupings, "groupings"
	if r.Policy != nil {
		most, what = f.tenant.RuntimeRules.Policies, "policies"
	}
	for _, other := range f.all() {
		if (other.Policy != nil) == (r.Policy != nil) {
			has++
		}
	}
	if has+more > most {
		return hostapi.Errorf(hostapi.CodeNotGranted, "tenant %s has %d %s, of %d that are its quota: remove some, or raise tenants.%[1]s.quotas.%[3]s", f.tenant.name, has, what, most)
	}
	return nil
}
