package token

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/florete/florete/internal/unixtime"
	"github.com/florete/florete/providers/store"
	"github.com/florete/florete/providers/token/rules"
)

// rulesPrefix is the beginning of the keys of runtime rules. Below the name of a tenant there is
// one key for each rule. Another key is written by each change of the rules. The rules of the
// policy are not in the store.
const rulesPrefix = "token/rules/"

func rulesOf(tenant string) string   { return rulesPrefix + tenant + "/" }
func changesOf(tenant string) string { return rulesOf(tenant) + "changes" }

// Quota limits how many rules a tenant may have. Rules in the flake count, too.
type Quota struct {
	Policies  int `json:"policies"`
	Groupings int `json:"groupings"`
}

// Rule is a rule of a tenant, with its origin. Exactly one of Policy and Grouping is set.
type Rule struct {
	*rules.Policy
	*rules.Grouping

	Origin  Origin        `json:"origin"`
	By      string        `json:"by,omitempty"`      // caller who added the rule at run time
	Added   unixtime.Time `json:"added,omitzero"`    // time at which the rule was added at run time
	Ignored string        `json:"ignored,omitempty"` // reason why the rule has no effect; empty if it has
}

// Origin tells where a rule comes from: from the flake, or from a caller who added it at run time.
type Origin string

// These are the origins of rules.
const (
	OfFlake   Origin = "flake"
	OfRuntime Origin = "runtime"
)

func (r Rule) String() string {
	if r.Policy != nil {
		return fmt.Sprintf("policy %s %s %s", r.Subject, r.Action, r.Object)
	}
	return fmt.Sprintf("grouping %s %s", r.Member, r.Role)
}

// check returns an error if the tenant cannot have the rule.
func (r Rule) check(names rules.Tenant) error {
	if r.Policy != nil {
		return names.CheckPolicy(*r.Policy)
	}
	return names.CheckGrouping(*r.Grouping)
}

// key returns the rule's key in the store.
func (r Rule) key(tenant string) string {
	h := sha256.Sum256([]byte(r.String())) // no part of it has a space
	return rulesOf(tenant) + hex.EncodeToString(h[:])
}

// set returns rules as a set, without their origins.
func set(all []Rule) (s rules.Set) {
	for _, r := range all {
		switch {
		case r.Ignored != "":
		case r.Policy != nil:
			s.Policies = append(s.Policies, *r.Policy)
		default:
			s.Groupings = append(s.Groupings, *r.Grouping)
		}
	}
	return s
}

// inForce contains the rules of a tenant at one time, both those of the flake and those added at
// run time.
type inForce struct {
	*rules.Rules
	tenant *Tenant
	added  []Rule       // at run time
	as     []store.Cond // as long as this holds
}

// inForce reads the rules of a tenant. It reads runtime rules again only if they have changed.
func (t tenants) inForce(ctx context.Context, tenant *Tenant) (*inForce, error) {
	if tenant.RuntimeRules == nil {
		return &inForce{Rules: tenant.compiled, tenant: tenant}, nil
	}
	changed, err := store.Find(ctx, t.store, changesOf(tenant.name))
	if err != nil {
		return nil, err
	}
	if known := tenant.known.Load(); known != nil && known.as[0].Modified == changed.Modified {
		return known, nil
	}
	entries, _, err := t.store.List(ctx, rulesOf(tenant.name))
	if err != nil {
		return nil, err
	}
	f := &inForce{tenant: tenant, as: []store.Cond{{Key: changesOf(tenant.name)}}}
	for _, e := range entries {
		if e.Key == changesOf(tenant.name) {
			f.as[0].Modified = e.Modified
			continue
		}
		var r Rule
		if err := json.Unmarshal(e.Value, &r); err != nil {
			return nil, fmt.Errorf("%s: %w", e.Key, err)
		}
		// The flake may have dropped a name of the rule since.
		if err := r.check(tenant.names); err != nil {
			r.Ignored = err.Error()
		}
		f.added = append(f.added, r)
	}
	if f.Rules, err = rules.Compile(tenant.names, tenant.Set, set(f.added)); err != nil {
		return nil, err
	}
	tenant.known.Store(f)
	return f, nil
}

// scope returns the objects that a rule concerns. For a policy, this is the object of the policy.
// For a grouping, these are all objects on which its role has a permission. For a role without
// permissions, it is the whole tenant, because the role may get any permission later.
func (f *inForce) scope(r Rule) ([]rules.Object, error) {
	if r.Policy != nil {
		o, err := rules.ParseObject(r.Object)
		return []rules.Object{o}, err
	}
	if all := f.objects(r.Role, rules.Narrow{}); len(all) > 0 {
		return all, nil
	}
	return []rules.Object{rules.TenantObject(f.tenant.name)}, nil
}

// reach returns the objects on which a caller has the permission for an action on rules.
func (f *inForce) reach(caller, action string) []rules.Object {
	return f.objects(caller, rules.Narrow{Actions: []string{action}})
}

// objects returns the objects on which a subject has permissions. The argument n restricts the
// permissions.
func (f *inForce) objects(subject string, n rules.Narrow) (all []rules.Object) {
	for _, p := range f.Permissions([]string{subject}, n) {
		all = append(all, p.Object)
	}
	return all
}

// beyond returns the first object that lies outside a caller's reach. The first argument lists the
// objects that the caller reaches, and the second lists the objects to check. If all of these are
// covered, the second result is false.
func beyond(reach, of []rules.Object) (rules.Object, bool) {
	for _, o := range of {
		if !slices.ContainsFunc(reach, func(wide rules.Object) bool { return wide.Covers(o) }) {
			return o, true
		}
	}
	return rules.Object{}, false
}

// all returns the rules of both origins in a sorted list.
func (f *inForce) all() (all []Rule) {
	for _, p := range f.tenant.Policies {
		all = append(all, Rule{Policy: &p, Origin: OfFlake})
	}
	for _, g := range f.tenant.Groupings {
		all = append(all, Rule{Grouping: &g, Origin: OfFlake})
	}
	all = append(all, f.added...)
	slices.SortFunc(all, func(a, b Rule) int {
		return cmp.Or(strings.Compare(a.String(), b.String()), strings.Compare(string(a.Origin), string(b.Origin)))
	})
	return all
}
