package published

import (
	"crypto/rand"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"

	"github.com/florete/florete/internal/accessgrant"
	"github.com/florete/florete/internal/terminal"
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
	half := func(name, public string) (file string) {
		file = filepath.Join(dir, name+".pub")
		if err := os.WriteFile(file, []byte(public+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		return file
	}
	absent := half("agent", leoKey) // the private half is nowhere
	stick := kit.NewSecurityKey()
	stickKey := kit.Authorized(stick.PublicKey())
	stickFile := half("stick", stickKey)
	holds := serveAgent(t, stick)
	var asked strings.Builder
	c := Cluster{Console: terminal.Console{Err: &asked}, Topology: compile.Topology{
		Name: "demo",
		Users: map[string]compile.User{
			"ann": {ID: kit.ID("user/ann"), ApprovalKeys: []string{annKey}}, "leo": {ID: kit.ID("user/leo"), ApprovalKeys: []string{leoKey, stickKey}},
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
		agent string // SSH_AUTH_SOCK
		want  string // part of the error; empty if signed
	}{
		"by leo":               {g, leo, "", ""},
		"by the public half":   {g, leo + ".pub", "", ""},
		"by an absent agent":   {g, absent, "", "ssh-keygen"},
		"by a security key":    {g, stickFile, holds, ""},
		"of one's own":         {g, ann, "", "user/ann cannot approve a request of their own"},
		"one's own end":        {end, ann, "", ""},
		"by a key of no one":   {g, eve, "", "no approver of role oncall has this key"},
		"without a key":        {g, filepath.Join(dir, "none"), "", "want an SSH key with its public half beside it"},
		"for longer than four": {long, leo, "", "hosts would not accept it"},
	} {
		t.Setenv("SSH_AUTH_SOCK", x.agent)
		s, err := c.sign(t.Context(), x.grant, x.key, true, "")
		switch {
		case x.want == "" && err != nil:
			t.Errorf("%s: %v", name, err)
		case x.want != "" && (err == nil || !strings.Contains(err.Error(), x.want)):
			t.Errorf("%s: got %+v, %v, want %q", name, s, err, x.want)
		}
	}
	if want := "touch the security key"; strings.Count(asked.String(), want) != 1 {
		t.Errorf("%q, want %q once", asked.String(), want)
	}
}

// securityKeyAgent is an SSH agent with one security key.
type securityKeyAgent struct {
	agent.Agent
	key *kit.SecurityKey
}

func (a securityKeyAgent) List() ([]*agent.Key, error) {
	public := a.key.PublicKey()
	return []*agent.Key{{Format: public.Type(), Blob: public.Marshal()}}, nil
}

func (a securityKeyAgent) Sign(_ ssh.PublicKey, data []byte) (*ssh.Signature, error) {
	return a.key.Sign(rand.Reader, data)
}

// serveAgent runs an SSH agent with a security key, and returns the path of its socket.
func serveAgent(t *testing.T, key *kit.SecurityKey) string {
	path := filepath.Join(t.TempDir(), "agent")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	t.Cleanup(wg.Wait)
	t.Cleanup(func() { l.Close() })
	wg.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			wg.Go(func() {
				defer conn.Close()
				agent.ServeAgent(securityKeyAgent{agent.NewKeyring(), key}, conn)
			})
		}
	})
	return path
}
