package published

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/florete/florete/internal/accessgrant"
	"github.com/florete/florete/internal/unixtime"
	"github.com/florete/florete/nix/operator/compile"
	"github.com/florete/florete/tests/kit"
)

// TestSignGrant checks that ssh-keygen makes signatures that hosts accept, and that keys of others
// sign nothing.
func TestSignGrant(t *testing.T) {
	dir := t.TempDir()
	key := func(name string) (file, public string) {
		file = filepath.Join(dir, name)
		public = kit.Authorized(kit.WriteHostKey(file))
		if err := os.WriteFile(file+".pub", []byte(public+" "+name+"@laptop\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		return file, public
	}
	leo, leoKey := key("leo")
	ann, annKey := key("ann")
	eve, _ := key("eve")
	agent := filepath.Join(dir, "agent.pub") // the private half is nowhere
	if err := os.WriteFile(agent, []byte(leoKey+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	c := Cluster{Topology: compile.Topology{
		Name: "demo",
		Users: map[string]compile.User{
			"ann": {ID: kit.ID("user/ann"), ApprovalKeys: []string{annKey}}, "leo": {ID: kit.ID("user/leo"), ApprovalKeys: []string{leoKey}},
		},
		Roles: map[string]compile.Role{"oncall": {Request: &compile.Request{Most: 4, Users: []string{"ann"}, Approvers: []string{"ann", "leo"}}}},
	}}
	now := time.Now().Truncate(time.Second)
	g := accessgrant.Grant{ID: strings.Repeat("ab", 16), Role: "oncall", User: kit.ID("user/ann"), From: unixtime.Of(now), Until: unixtime.Of(now.Add(time.Hour))}
	long, end := g, g
	long.Until, end.Ends = unixtime.Of(now.Add(5*time.Hour)), true
	for name, x := range map[string]struct {
		grant accessgrant.Grant
		key   string
		want  string // part of the error; empty if signed
	}{
		"by leo":               {g, leo, ""},
		"by the public half":   {g, leo + ".pub", ""},
		"by an absent agent":   {g, agent, "ssh-keygen"},
		"of one's own":         {g, ann, "user/ann cannot approve a request of their own"},
		"one's own end":        {end, ann, ""},
		"by a key of no one":   {g, eve, "no approver of role oncall has this key"},
		"without a key":        {g, filepath.Join(dir, "none"), "want an SSH key with its public half beside it"},
		"for longer than four": {long, leo, "hosts would not accept it"},
	} {
		t.Setenv("SSH_AUTH_SOCK", "")
		s, err := c.sign(t.Context(), x.grant, x.key, true, "")
		switch {
		case x.want == "" && err != nil:
			t.Errorf("%s: %v", name, err)
		case x.want != "" && (err == nil || !strings.Contains(err.Error(), x.want)):
			t.Errorf("%s: got %+v, %v, want %q", name, s, err, x.want)
		}
	}
}
