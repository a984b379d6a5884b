// Package rules evaluates the rules of a tenant, which decide what the bearers of tokens may do. A
// policy permits a subject an action on an object. A grouping gives a member a role, which may
// itself have roles:
//
//	subject                            from
//	spiffe://demo.flor/service/wiki    the cluster
//	subject:corp/alice                 a token of issuer corp, its claim for the subject
//	group:corp/devs                    a token of issuer corp, its claim for groups
//	role:writer                        groupings
//
// There are no wildcards for subjects and actions. Each object in a tenant's rules belongs to that
// tenant.
//
// Services that have the tenant's public keys in a file, or read them from the tenant's pages,
// verify its tokens offline:
//
//	v := rules.Verifier{Issuer: "http://tokens.demo.flor.rete/v1/tenants/acme", Keys: rules.KeyFile("/var/lib/florete/needs/tenant-acme/current/jwks.json")}
//	token, err := v.Verify(bearer, time.Now())
//	if err == nil && token.May("stream.publish", "stream:acme/payments/orders") { … }
package rules

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/florete/florete/internal/spiffe"
)

// These are the actions on the rules of a tenant. The object of a policy limits to which rules they
// apply.
const (
	View            = "rbac.view"
	ManagePolicies  = "rbac.policy.manage"
	ManageGroupings = "rbac.assignment.manage"
)

// Policy is a rule that permits a subject, such as a service or a group of people, to carry out an
// action on an object.
type Policy struct {
	Subject string `json:"subject"`
	Action  string `json:"action"`
	Object  string `json:"object"`
}

// Grouping is a rule that gives a member a role.
type Grouping struct {
	Member string `json:"member"`
	Role   string `json:"role"`
}

// Set is a set of rules: policies and groupings.
type Set struct {
	Policies  []Policy   `json:"policies"`
	Groupings []Grouping `json:"groupings"`
}

// Tenant contains the names that the rules of a tenant may contain.
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

// Subject returns the name by which rules refer to the subject of a token. For the issuer corp and
// the subject alice, it is subject:corp/alice. If the subject contains characters that rules cannot
// contain, Subject returns an error.
func Subject(issuer, sub string) (string, error) { return claimed("subject:"+issuer+"/", sub) }

// Group returns the name by which rules refer to a group. For the issuer corp and the group devs,
// it is group:corp/devs. If the group contains characters that rules cannot contain, Group returns
// an error.
func Group(issuer, group string) (string, error) { return claimed("group:"+issuer+"/", group) }

func claimed(prefix, value string) (string, error) {
	if !claim.MatchString(value) {
		return "", fmt.Errorf("%s…: %.80q: want 1 to 255 printable characters without spaces, quotes and commas", prefix, value)
	}
	return prefix + value, nil
}

// CheckPolicy returns an error if a rule names an unknown subject, an invalid action, or an object
// of another tenant.
func (t Tenant) CheckPolicy(p Policy) error {
	if err := t.checkSubject(p.Subject); err != nil {
		return err
	}
	if _, err := ParseAction(p.Action); err != nil {
		return err
	}
	_, err := t.Object(p.Object)
	return err
}

// Object parses the name of an object in this tenant. If the object belongs to another tenant or to
// an unknown namespace, Object returns an error.
func (t Tenant) Object(s string) (Object, error) {
	o, err := ParseObject(s)
	switch {
	case err != nil:
		return o, err
	case o.Tenant() != t.Name:
		return o, fmt.Errorf("object %q: not of tenant %s", s, t.Name)
	case o.Namespace() != "" && o.Namespace() != Any && !slices.Contains(t.Namespaces, o.Namespace()):
		return o, fmt.Errorf("object %q: tenant %s has no namespace %q", s, t.Name, o.Namespace())
	}
	return o, nil
}

// CheckGrouping returns an error if a grouping contains an unknown name.
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

// Rules contains all rules of a tenant after they were checked, and answers which permissions they
// give. It is immutable, so several goroutines may use it.
type Rules struct {
	permitted map[string][]Permission // by subject
	roles     map[string][]string     // by member
}

// Compile checks all rules of a tenant and combines the given sets of rules, which may have rules
// in common. If a rule is not valid, Compile returns an error.
func Compile(t Tenant, sets ...Set) (*Rules, error) {
	r := &Rules{map[string][]Permission{}, map[string][]string{}}
	for _, s := range sets {
		for _, p := range s.Policies {
			if err := t.CheckPolicy(p); err != nil {
				return nil, fmt.Errorf("tenant %s: policy: %w", t.Name, err)
			}
			o, err := ParseObject(p.Object)
			if err != nil {
				return nil, err
			}
			r.permitted[p.Subject] = append(r.permitted[p.Subject], Permission{Action: p.Action, Object: o})
		}
		for _, g := range s.Groupings {
			if err := t.CheckGrouping(g); err != nil {
				return nil, fmt.Errorf("tenant %s: grouping: %w", t.Name, err)
			}
			r.roles[g.Member] = append(r.roles[g.Member], g.Role)
		}
	}
	return r, nil
}

// withRoles returns the subjects and all their roles, direct and indirect.
func (r *Rules) withRoles(subjects []string) []string {
	all := slices.Clone(subjects)
	seen := map[string]bool{}
	for i := 0; i < len(all); i++ {
		for _, role := range r.roles[all[i]] {
			if !seen[role] {
				seen[role] = true
				all = append(all, role)
			}
		}
	}
	return all
}

// Narrow limits permissions to the listed actions and objects. If one of the lists is empty, it
// limits nothing.
type Narrow struct {
	Actions []string
	Objects []Object
}

// Permissions returns the permissions that the rules give to a caller, sorted. The subjects are the
// caller's own name and its groups. The argument n limits the result. A permission that another one
// includes is left out.
func (r *Rules) Permissions(subjects []string, n Narrow) []Permission {
	found := map[Permission]bool{}
	for _, s := range r.withRoles(subjects) {
		for _, p := range r.permitted[s] {
			if len(n.Actions) > 0 && !slices.Contains(n.Actions, p.Action) {
				continue
			}
			if len(n.Objects) == 0 {
				found[p] = true
			}
			for _, wanted := range n.Objects {
				if both, ok := Intersect(p.Object, wanted); ok {
					found[Permission{Action: p.Action, Object: both}] = true
				}
			}
		}
	}
	var kept []Permission
	for p := range found {
		covered := false
		for q := range found {
			covered = covered || p != q && p.Action == q.Action && q.Object.Covers(p.Object)
		}
		if !covered {
			kept = append(kept, p)
		}
	}
	slices.SortFunc(kept, func(a, b Permission) int {
		return cmp.Or(strings.Compare(a.Action, b.Action), strings.Compare(a.Object.String(), b.Object.String()))
	})
	return kept
}
