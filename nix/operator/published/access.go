package published

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/florete/florete/internal/accessgrant"
	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/internal/terminal"
	"github.com/florete/florete/internal/unixtime"
	"github.com/florete/florete/nix/operator/client"
	"github.com/florete/florete/providers/archive"
	"github.com/florete/florete/providers/control"
)

// AccessItem is a request for a role, or a grant of a role that is in force.
type AccessItem struct {
	ID      string        `json:"id"`
	State   string        `json:"state"` // "waits" or "in force"
	Role    string        `json:"role"`
	User    spiffe.ID     `json:"user"`
	Until   unixtime.Time `json:"until,omitzero"`    // end of a grant
	By      spiffe.ID     `json:"approver,omitzero"` // of a grant
	Seconds int64         `json:"seconds,omitempty"` // for which a role is requested
	Reason  string        `json:"reason,omitempty"`  // of a request
}

func (i AccessItem) lasts() time.Duration { return time.Duration(i.Seconds) * time.Second }

// RequestAccess requests a role for the user who runs the command.
func (c Cluster) RequestAccess(ctx context.Context, role, reason string, lasts time.Duration) error {
	r, err := c.requestable(role)
	if err != nil {
		return err
	}
	if most := time.Duration(r.Most) * time.Hour; lasts > most || lasts < time.Minute {
		return fmt.Errorf("--for %s: want one minute to %s, which is roles.%s.request.most", lasts, most, role)
	}
	id := make([]byte, 16)
	rand.Read(id)
	q := control.AccessRequest{ID: hex.EncodeToString(id), Role: role, Seconds: int64(lasts / time.Second), Reason: reason}
	if err := c.Providers.All(func(at *client.Provider) error { _, err := at.RequestAccess(ctx, q); return err }); err != nil {
		return err
	}
	fmt.Fprintf(c.Out, "requested; one of %s approves it with:\nflorctl access approve %s\n", strings.Join(r.Approvers, ", "), q.ID)
	return nil
}

func (c Cluster) requestable(role string) (r struct {
	Most      int
	Approvers []string
}, err error) {
	of, ok := c.Topology.Roles[role]
	if !ok || of.Request == nil {
		var can []string
		for name, o := range c.Topology.Roles {
			if o.Request != nil {
				can = append(can, name)
			}
		}
		slices.Sort(can)
		return r, fmt.Errorf("role %q cannot be requested, want one of %s: roles.<name>.request permits it", role, cmp.Or(strings.Join(can, ", "), "none"))
	}
	r.Most, r.Approvers = of.Request.Most, of.Request.Approvers
	return r, nil
}

// Access returns the requests that wait, and the grants in force. It leaves out grants without a
// valid signature.
func (c Cluster) Access(ctx context.Context) ([]AccessItem, error) {
	requests, err := client.Each(c.Providers, func(at *client.Provider) ([]archive.AccessRequest, error) {
		a, err := at.Access(ctx)
		return a.Requests, err
	}, func(r archive.AccessRequest) string { return r.ID })
	if err != nil {
		return nil, err
	}
	grants, err := client.Each(c.Providers, func(at *client.Provider) ([]accessgrant.Signed, error) {
		a, err := at.Access(ctx)
		return a.Grants, err
	}, func(s accessgrant.Signed) string { return s.Grant })
	if err != nil {
		return nil, err
	}
	manifest := document.Manifest{Cluster: c.Topology.Name, Requests: c.rules()}
	held, _ := accessgrant.Held{}.Merge(manifest, grants, time.Now())
	items, given := []AccessItem{}, map[string]bool{}
	for _, g := range held.InForce(manifest, nil, time.Now()) {
		given[g.ID] = true
		items = append(items, AccessItem{ID: g.ID, State: "in force", Role: g.Role, User: g.User, Until: g.Until, By: g.By})
	}
	for _, r := range requests {
		if !given[r.ID] {
			items = append(items, AccessItem{ID: r.ID, State: "waits", Role: r.Role, User: r.User, Reason: terminal.Text(r.Reason), Seconds: r.Seconds})
		}
	}
	return items, nil
}

// rules returns the rules for grants of all roles, as manifests contain them.
func (c Cluster) rules() map[string]document.Request {
	rules := map[string]document.Request{}
	for name, role := range c.Topology.Roles {
		if role.Request == nil {
			continue
		}
		r := document.Request{Most: role.Request.Most}
		for _, u := range role.Request.Approvers {
			user := c.Topology.Users[u]
			r.Approvers = append(r.Approvers, document.Approver{ID: user.ID, Keys: user.ApprovalKeys})
		}
		rules[name] = r
	}
	return rules
}

// PrintAccess writes requests and grants as a table.
func PrintAccess(w io.Writer, items []AccessItem) error {
	if len(items) == 0 {
		fmt.Fprintln(w, "no requests, and no grants in force")
		return nil
	}
	t := terminal.NewTable(w, "ID", "ROLE", "USER", "STATE", "APPROVER", "REASON")
	for _, i := range items {
		state, by, reason := "waits, for "+i.lasts().String(), "-", i.Reason
		if i.State == "in force" {
			state, by, reason = "until "+i.Until.UTC().Format("2006-01-02 15:04 MST"), i.By.Short(), "-"
		}
		t.Row(i.ID, i.Role, i.User.Short(), state, by, reason)
	}
	return t.Flush()
}

// find returns the only request or grant whose ID begins with the given text.
func (c Cluster) find(ctx context.Context, id string) (AccessItem, error) {
	items, err := c.Access(ctx)
	if err != nil {
		return AccessItem{}, err
	}
	items = slices.DeleteFunc(items, func(i AccessItem) bool { return id == "" || !strings.HasPrefix(i.ID, id) })
	if len(items) != 1 {
		return AccessItem{}, fmt.Errorf("%q: found %d requests and grants with this ID, want one: florctl access list", id, len(items))
	}
	return items[0], nil
}

// ApproveAccess signs a grant for a request with an SSH key, and makes the providers offer it to hosts.
// The key is the path of a private key or, if an SSH agent has that, of a public key. Unless yes is
// true, ApproveAccess asks before it signs.
func (c Cluster) ApproveAccess(ctx context.Context, id, key string, yes bool) error {
	item, err := c.find(ctx, id)
	if err != nil {
		return err
	}
	if item.State != "waits" {
		return fmt.Errorf("%s is in force already: florctl access list", item.ID)
	}
	now := time.Now().Truncate(time.Second)
	g := accessgrant.Grant{ID: item.ID, Role: item.Role, User: item.User, From: unixtime.Of(now), Until: unixtime.Of(now.Add(item.lasts()))}
	if !slices.Contains(c.requesters(g.Role), g.User) {
		return fmt.Errorf("%s may not request role %q: roles.<name>.request.by names the teams that may", g.User.Short(), g.Role)
	}
	signed, err := c.sign(ctx, g, key, yes, fmt.Sprintf("give role %s to %s until %s (%s)? reason: %s",
		g.Role, g.User.Short(), g.Until.UTC().Format("2006-01-02 15:04 MST"), item.lasts(), item.Reason))
	if err == nil {
		err = c.Providers.All(func(at *client.Provider) error { return at.PutGrant(ctx, signed) })
	}
	if err != nil {
		return err
	}
	fmt.Fprintf(c.Out, "%s has role %s until %s; to end it: florctl access end %s\n", g.User.Short(), g.Role, g.Until.UTC().Format("2006-01-02 15:04 MST"), g.ID)
	return nil
}

func (c Cluster) requesters(role string) (ids []spiffe.ID) {
	if r := c.Topology.Roles[role].Request; r != nil {
		for _, u := range r.Users {
			ids = append(ids, c.Topology.Users[u].ID)
		}
	}
	return ids
}

// EndAccess ends a grant before its time, or drops a request. Only ending a grant needs the key.
func (c Cluster) EndAccess(ctx context.Context, id, key string, yes bool) error {
	item, err := c.find(ctx, id)
	if err != nil {
		return err
	}
	if item.State == "waits" {
		dropped, failed := false, error(nil)
		for _, at := range c.Providers {
			if _, err := at.DropAccessRequest(ctx, item.ID); err != nil {
				failed = errors.Join(failed, err)
			} else {
				dropped = true
			}
		}
		if !dropped {
			return failed
		}
		fmt.Fprintf(c.Out, "the request of %s for role %s is dropped\n", item.User.Short(), item.Role)
		return nil
	}
	signed, err := c.sign(ctx, accessgrant.Grant{
		ID: item.ID, Role: item.Role, User: item.User, From: unixtime.Of(time.Now().Truncate(time.Second)), Until: item.Until, Ends: true,
	}, key, yes, fmt.Sprintf("end role %s of %s now?", item.Role, item.User.Short()))
	if err == nil {
		err = c.Providers.All(func(at *client.Provider) error { return at.PutGrant(ctx, signed) })
	}
	if err != nil {
		return err
	}
	fmt.Fprintf(c.Out, "role %s of %s ends within seconds\n", item.Role, item.User.Short())
	return nil
}

// sign signs a grant as the approver whose key is given.
func (c Cluster) sign(ctx context.Context, g accessgrant.Grant, key string, yes bool, question string) (s accessgrant.Signed, err error) {
	public, err := publicKey(key)
	if err != nil {
		return s, err
	}
	g.Schema, g.Cluster = accessgrant.Schema, c.Topology.Name
	rules := c.rules()
	for _, a := range rules[g.Role].Approvers {
		if slices.Contains(a.Keys, public) {
			g.By = a.ID
		}
	}
	if g.By.IsZero() {
		return s, fmt.Errorf("--key %s: no approver of role %s has this key, want a key in users.<name>.approvalKeys of a user in a team of roles.%[2]s.request.approve", key, g.Role)
	}
	if g.By == g.User && !g.Ends {
		return s, fmt.Errorf("%s cannot approve a request of their own: another approver must", g.By.Short())
	}
	if !yes {
		if err := c.Confirm(question, "nothing was signed; to sign without a question, add --yes"); err != nil {
			return s, err
		}
	}
	if strings.HasPrefix(public, "sk-") {
		fmt.Fprintf(c.Err, "touch the security key of --key %s\n", key)
	}
	s.Grant = g.Encode()
	var out, problem bytes.Buffer
	cmd := exec.CommandContext(ctx, "ssh-keygen", "-Y", "sign", "-n", accessgrant.Namespace, "-f", key)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(accessgrant.Text(s.Grant)), &out, &problem
	if err := cmd.Run(); err != nil {
		return s, fmt.Errorf("sign with --key %s: ssh-keygen: %w: %s", key, err, strings.TrimSpace(problem.String()))
	}
	s.Signature = out.String()
	if _, err := s.Verify(c.Topology.Name, rules); err != nil {
		return s, fmt.Errorf("hosts would not accept it: %w", err)
	}
	return s, nil
}

// publicKey returns the public half of an SSH key in authorized_keys form, without a comment. The
// file is a public key, or a private one beside which its public half is.
func publicKey(file string) (string, error) {
	path := strings.TrimSuffix(file, ".pub") + ".pub"
	b, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("--key %s: %w: want an SSH key with its public half beside it", file, err)
	}
	key, err := accessgrant.ParseKey(string(b))
	if err != nil {
		return "", fmt.Errorf("%s: %w", path, err)
	}
	return strings.TrimSpace(string(ssh.MarshalAuthorizedKey(key))), nil
}
