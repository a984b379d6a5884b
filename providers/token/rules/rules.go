// Package rules is who may do what in a tenant. A policy permits a subject an action on an
// object; a grouping gives a member a role. Casbin evaluates them:
//
//	subject                            of
//	spiffe://demo.flor/service/wiki    the cluster
//	subject:corp/alice                 a token of issuer corp, its claim for the subject
//	group:corp/devs                    likewise, one of its claim for groups
//	role:writer                        groupings
//
// Nothing stands for several subjects or actions, and each object is of the rules' own tenant.
package rules

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/casbin/casbin/v2"
	"github.com/casbin/casbin/v2/model"

	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/providers/token/object"
)

// Actions on the rules themselves, within the object that a policy has.
const (
	View            = "rbac.view"
	ManagePolicies  = "rbac.policy.manage"
	ManageGroupings = "rbac.assignment.manage"
)

// Policy permits a subject an action on an object.
type Policy struct {
	Subject string `json:"subject"`
	Action  string `json:"action"`
	Object  string `json:"object"`
}

// Grouping gives a member a role.
type Grouping struct {
	Member string `json:"member"`
	Role   string `json:"role"`
}

// Set is policies and groupings.
type Set struct {
	Policies  []Policy   `json:"policies"`
	Groupings []Grouping `json:"groupings"`
}

// Tenant is what rules may name.
type Tenant struct {
	Name        string
	TrustDomain string
	Namespaces  []string
	Issuers     []string
}

var (
	role  = regexp.MustCompile("^role:" + spiffe.LabelPattern + "$")
	claim = regexp.MustCompile(`^[!#-+\--~]{1,255}$`) // printable, without space, quote and comma
)

// Subject and Group are those of an issuer's token. The error is that no rule can name it.
func Subject(issuer, sub string) (string, error) { return claimed("subject:"+issuer+"/", sub) }

// Group is one.
func Group(issuer, group string) (string, error) { return claimed("group:"+issuer+"/", group) }

func claimed(prefix, value string) (string, error) {
	if !claim.MatchString(value) {
		return "", fmt.Errorf("%s…: %.80q: want 1 to 255 printable characters without spaces, quotes and commas", prefix, value)
	}
	return prefix + value, nil
}

// CheckPolicy refuses a policy that is not of the tenant, or names what it does not have.
func (t Tenant) CheckPolicy(p Policy) error {
	if err := t.checkSubject(p.Subject); err != nil {
		return err
	}
	if _, err := object.ParseAction(p.Action); err != nil {
		return err
	}
	_, err := t.Object(p.Object)
	return err
}

// Object is one of the tenant.
func (t Tenant) Object(s string) (object.Object, error) {
	o, err := object.Parse(s)
	switch {
	case err != nil:
		return o, err
	case o.Tenant() != t.Name:
		return o, fmt.Errorf("object %q: not of tenant %s", s, t.Name)
	case o.Namespace() != "" && o.Namespace() != object.Any && !slices.Contains(t.Namespaces, o.Namespace()):
		return o, fmt.Errorf("object %q: tenant %s has no namespace %q", s, t.Name, o.Namespace())
	}
	return o, nil
}

// CheckGrouping refuses a grouping likewise.
func (t Tenant) CheckGrouping(g Grouping) error {
	if !role.MatchString(g.Role) {
		return fmt.Errorf("role %.100q: want role:NAME", g.Role)
	}
	if g.Member == g.Role {
		return fmt.Errorf("role %q: it has itself in it", g.Role)
	}
	return t.checkSubject(g.Member)
}

func (t Tenant) checkSubject(s string) error {
	kind, rest, _ := strings.Cut(s, ":")
	switch kind {
	case "role":
		if role.MatchString(s) {
			return nil
		}
	case "subject", "group":
		issuer, value, _ := strings.Cut(rest, "/")
		if !slices.Contains(t.Issuers, issuer) {
			return fmt.Errorf("subject %.200q: tenant %s has no issuer %.80q", s, t.Name, issuer)
		}
		if claim.MatchString(value) {
			return nil
		}
	case "spiffe":
		id, err := spiffe.ParseID(s)
		if err == nil && id.TrustDomain() != t.TrustDomain {
			err = fmt.Errorf("not of trust domain %s", t.TrustDomain)
		}
		if err != nil {
			return fmt.Errorf("subject %.200q: %w", s, err)
		}
		return nil
	}
	return fmt.Errorf("subject %.200q: want a SPIFFE ID, subject:ISSUER/SUB, group:ISSUER/GROUP or role:NAME", s)
}

// Rules are sets that were checked, to evaluate. They do not change.
type Rules struct {
	enforcer *casbin.Enforcer
}

// What is evaluated: whether what a subject, or a role of it, is permitted covers what it wants.
const definition = `
[request_definition]
r = sub, act, obj
[policy_definition]
p = sub, act, obj
[role_definition]
g = _, _
[policy_effect]
e = some(where (p.eft == allow))
[matchers]
m = r.act == p.act && covers(p.obj, r.obj) && g(r.sub, p.sub)
`

// Compile makes rules of sets, of which the same may be in several.
func Compile(t Tenant, sets ...Set) (*Rules, error) {
	policies, groupings := map[Policy]bool{}, map[Grouping]bool{}
	for _, s := range sets {
		for _, p := range s.Policies {
			if err := t.CheckPolicy(p); err != nil {
				return nil, fmt.Errorf("tenant %s: policy: %w", t.Name, err)
			}
			policies[p] = true
		}
		for _, g := range s.Groupings {
			if err := t.CheckGrouping(g); err != nil {
				return nil, fmt.Errorf("tenant %s: grouping: %w", t.Name, err)
			}
			groupings[g] = true
		}
	}
	m, err := model.NewModelFromString(definition)
	if err != nil {
		return nil, err
	}
	e, err := casbin.NewEnforcer(m)
	if err != nil {
		return nil, err
	}
	e.AddFunction("covers", func(args ...any) (any, error) {
		if len(args) != 2 {
			return false, errors.New("covers wants two objects")
		}
		a, _ := args[0].(string)
		b, _ := args[1].(string)
		wide, err := object.Parse(a)
		if err != nil {
			return false, err
		}
		narrow, err := object.Parse(b)
		return wide.Covers(narrow), err
	})
	var p, g [][]string
	for rule := range policies {
		p = append(p, []string{rule.Subject, rule.Action, rule.Object})
	}
	for rule := range groupings {
		g = append(g, []string{rule.Member, rule.Role})
	}
	if len(p) > 0 {
		if _, err := e.AddPolicies(p); err != nil {
			return nil, err
		}
	}
	if len(g) > 0 {
		if _, err := e.AddGroupingPolicies(g); err != nil {
			return nil, err
		}
	}
	return &Rules{e}, nil
}

// May is whether one of the subjects is permitted an action on all of an object.
func (r *Rules) May(subjects []string, action string, o object.Object) (bool, error) {
	for _, s := range subjects {
		if ok, err := r.enforcer.Enforce(s, action, o.String()); ok || err != nil {
			return ok, err
		}
	}
	return false, nil
}

// Narrow is what a caller wants of its permissions; all of them where it is zero.
type Narrow struct {
	Actions []string
	Objects []object.Object
}

// Permissions are what the subjects are permitted, narrowed: sorted, none covered by another.
func (r *Rules) Permissions(subjects []string, n Narrow) ([]object.Permission, error) {
	found := map[object.Permission]bool{}
	for _, s := range subjects {
		all, err := r.enforcer.GetImplicitPermissionsForUser(s)
		if err != nil {
			return nil, err
		}
		for _, p := range all {
			o, err := object.Parse(p[2])
			if err != nil {
				return nil, err
			}
			if len(n.Actions) > 0 && !slices.Contains(n.Actions, p[1]) {
				continue
			}
			if len(n.Objects) == 0 {
				found[object.Permission{Action: p[1], Object: o}] = true
			}
			for _, wanted := range n.Objects {
				if both, ok := object.Intersect(o, wanted); ok {
					found[object.Permission{Action: p[1], Object: both}] = true
				}
			}
		}
	}
	var kept []object.Permission
	for p := range found {
		covered := false
		for q := range found {
			covered = covered || p != q && p.Action == q.Action && q.Object.Covers(p.Object)
		}
		if !covered {
			kept = append(kept, p)
		}
	}
	slices.SortFunc(kept, func(a, b object.Permission) int {
		return cmp.Or(strings.Compare(a.Action, b.Action), strings.Compare(a.Object.String(), b.Object.String()))
	})
	return kept, nil
}
