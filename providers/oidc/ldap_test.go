package oidc

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/oauth2"

	"github.com/florete/florete/tests/kit"
	"github.com/florete/florete/tests/kit/providertest"
	"github.com/florete/florete/tests/program"
)

const bindDN, bindPassword = "cn=florete,dc=demo", "not in any store"

// people are the entries of the directory: alice is in writers and staff, bob is in staff, and
// carol is in no group.
const people = `dn: dc=demo
objectClass: dcObject
objectClass: organization
o: demo
dc: demo

dn: ou=people,dc=demo
objectClass: organizationalUnit
ou: people

dn: ou=groups,dc=demo
objectClass: organizationalUnit
ou: groups
%s%s%s
dn: cn=writers,ou=groups,dc=demo
objectClass: groupOfNames
cn: writers
member: uid=alice,ou=people,dc=demo

dn: cn=staff,ou=groups,dc=demo
objectClass: groupOfNames
cn: staff
member: uid=alice,ou=people,dc=demo
member: uid=bob,ou=people,dc=demo
`

func entry(name string) string {
	return fmt.Sprintf(`
dn: uid=%[1]s,ou=people,dc=demo
objectClass: inetOrgPerson
uid: %[1]s
cn: %[1]s of demo
sn: demo
mail: %[1]s@demo.flor
userPassword: password of %[1]s
`, name)
}

// slapd is a directory: Debian's server, run by this test.
type slapd struct {
	t       *testing.T
	address string
	process *exec.Cmd
}

func newSlapd(t *testing.T) *slapd {
	t.Helper()
	directory := program.Require(t, "slapd")
	root, server := directory.Root, directory.Command
	if _, err := exec.LookPath("ldapadd"); err != nil {
		t.Skip("NOT RUN: nobody signs in by an LDAP directory: install package ldap-utils")
	}
	dir := t.TempDir()
	data := filepath.Join(dir, "data")
	if err := os.Mkdir(data, 0o700); err != nil {
		t.Fatal(err)
	}
	config := fmt.Sprintf(`include %[4]s/etc/ldap/schema/core.schema
include %[4]s/etc/ldap/schema/cosine.schema
include %[4]s/etc/ldap/schema/inetorgperson.schema
modulepath %[4]s/usr/lib/ldap
moduleload back_mdb
pidfile %[1]s/pid
database mdb
maxsize 16777216
suffix "dc=demo"
rootdn "%[2]s"
rootpw "%[3]s"
directory %[1]s/data
access to attrs=userPassword by anonymous auth by * none
access to * by anonymous none by * read
`, dir, bindDN, bindPassword, root)
	path := filepath.Join(dir, "slapd.conf")
	if err := os.WriteFile(path, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	s := &slapd{t: t, address: providertest.Loopback()}
	s.process = exec.Command(server[0], append(server[1:], "-f", path, "-h", "ldap://"+s.address+"/", "-d", "0")...)
	s.process.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := s.process.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.stop)
	kit.Succeeds(t, "slapd to listen", func() error {
		c, err := net.Dial("tcp", s.address)
		if err == nil {
			c.Close()
		}
		return err
	})
	s.do("ldapadd", fmt.Sprintf(people, entry("alice"), entry("bob"), entry("carol")))
	return s
}

func (s *slapd) stop() {
	_ = s.process.Process.Kill()
	_ = s.process.Wait()
}

// do runs a tool of ldap-utils as the administrator.
func (s *slapd) do(tool, input string, args ...string) {
	s.t.Helper()
	c := exec.Command(tool, append([]string{"-x", "-H", "ldap://" + s.address, "-D", bindDN, "-w", bindPassword}, args...)...)
	c.Stdin = strings.NewReader(input)
	if out, err := c.CombinedOutput(); err != nil {
		s.t.Fatalf("%s: %v\n%s", tool, err, out)
	}
}

// leaves removes a person from a group.
func (s *slapd) leaves(name, group string) {
	s.t.Helper()
	s.do("ldapmodify", fmt.Sprintf("dn: cn=%s,ou=groups,dc=demo\nchangetype: modify\ndelete: member\nmember: uid=%s,ou=people,dc=demo\n", group, name))
}

// newLDAP returns a provider that uses the directory in addition to the users file.
func newLDAP(t *testing.T, want func(*Request)) (*fixture, *slapd) {
	t.Helper()
	dir := newSlapd(t)
	f := prepared(t)
	f.more = `,"ldap":{"corp":{"title":"Staff directory","server":"ldap://` + dir.address + `","roots":"","bindDN":"` + bindDN + `",
		"people":{"base":"ou=people,dc=demo","filter":"(objectClass=inetOrgPerson)","login":"uid","id":"uid","email":"mail","name":"cn"},
		"groups":{"base":"ou=groups,dc=demo","filter":"","person":"dn","member":"member","name":"cn"}}}`
	f.want = want
	f.grant(callback)
	if err := os.WriteFile(filepath.Join(f.dir, "connector-corp"), []byte(bindPassword+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	f.start()
	return f, dir
}

// at begins a sign-in at a connector.
func at(connector string) oauth2.AuthCodeOption {
	return oauth2.SetAuthURLParam("connector_id", connector)
}

// refusals counts the audit rows with a code.
func (f *fixture) refusals(code string) (n int) {
	f.t.Helper()
	for _, r := range f.audit() {
		if r.Code == code {
			n++
		}
	}
	return n
}

// claims contains the claims of an ID token that the tests check.
type claims struct {
	Email    string   `json:"email"`
	Name     string   `json:"name"`
	Username string   `json:"preferred_username"`
	Groups   []string `json:"groups"`
}

func (s *service) claims(token *oauth2.Token) (c claims) {
	s.t.Helper()
	if err := s.idToken(token).Claims(&c); err != nil {
		s.t.Fatal(err)
	}
	return c
}

// enters signs in a person of the directory, and returns the tokens.
func (s *service) enters(name string) *oauth2.Token {
	s.t.Helper()
	p := s.submit(s.begin("state", "verifier", at("corp")), name, "password of "+name)
	if p.location == nil {
		s.t.Fatalf("%s: status %d: %s", name, p.status, p.text)
	}
	token, err := s.Exchange(s.ctx(), p.location.Query().Get("code"), oauth2.VerifierOption("verifier"))
	if err != nil {
		s.t.Fatal(err)
	}
	return token
}

func TestLDAP(t *testing.T) {
	t.Parallel()
	f, dir := newLDAP(t, nil)
	s := f.service(f.register(1))
	s.Scopes = append(s.Scopes, "groups")

	if p := s.begin("state", "verifier"); !strings.Contains(p.text, "Staff directory") || !strings.Contains(p.text, "Email and password") {
		t.Errorf("status %d, and no choice of where to sign in: %s", p.status, p.text)
	}
	token := s.enters("alice")
	c := s.claims(token)
	slices.Sort(c.Groups)
	if c.Email != "alice@demo.flor" || c.Name != "alice of demo" || c.Username != "alice" || !slices.Equal(c.Groups, []string{"staff", "writers"}) {
		t.Errorf("claims are %+v", c)
	}
	p := s.submit(s.begin("state", "verifier", at("corp")), "alice", "password of bob")
	if p.status != 401 || !strings.Contains(p.text, "username and password do not match") {
		t.Errorf("wrong password: status %d: %s", p.status, p.text)
	}
	if p := s.submit(s.begin("state", "verifier", at("corp")), "*", "password of alice"); p.status != 401 {
		t.Errorf("a filter as a name: status %d: %s", p.status, p.text)
	}

	bob := s.enters("bob")
	dir.leaves("alice", "staff")
	dir.do("ldapdelete", "", "uid=bob,ou=people,dc=demo")
	f.age(token, bob)
	again, err := s.TokenSource(s.ctx(), &oauth2.Token{RefreshToken: token.RefreshToken}).Token()
	if err != nil {
		t.Fatal(err)
	}
	if c := s.claims(again); !slices.Equal(c.Groups, []string{"writers"}) {
		t.Errorf("after she left, the groups are %q", c.Groups)
	}

	_, err = s.TokenSource(s.ctx(), &oauth2.Token{RefreshToken: bob.RefreshToken}).Token()
	refused(t, "somebody who is gone", err, "invalid_grant")

	// After a change of the password file, the next try succeeds.
	secret := filepath.Join(f.dir, "connector-corp")
	for _, away := range []func(){
		func() { must(0, os.Remove(secret)) },
		func() { must(0, os.WriteFile(secret, []byte("another"), 0o600)) },
	} {
		away()
		p := s.submit(s.begin("state", "verifier", at("corp")), "alice", "password of alice")
		if p.status != 503 || !strings.Contains(p.text, "directory that knows your password") {
			t.Errorf("status %d: %s", p.status, p.text)
		}
	}
	must(0, os.WriteFile(secret, []byte(bindPassword), 0o600))
	s.enters("alice")
	dir.stop()
	if p := s.submit(s.begin("state", "verifier", at("corp")), "carol", "password of carol"); p.status != 503 {
		t.Errorf("without the directory: status %d: %s", p.status, p.text)
	}
	if p := s.submit(s.begin("state", "verifier", at("local")), email, password); p.location == nil {
		t.Errorf("without the directory, somebody of the users file: status %d: %s", p.status, p.text)
	}
	if n := f.refusals(codePassword); n != 2 {
		t.Errorf("%d audit rows of wrong passwords: a directory that is away counts as none", n)
	}
	f.stop()
	for _, secret := range []string{bindPassword, "password of alice"} {
		if strings.Contains(f.logs.String(), secret) {
			_, line, _ := strings.Cut(f.logs.String(), secret)
			t.Errorf("the logs have %q: %.300s", secret, line)
		}
	}
}

// TestAllowedGroups checks that people outside a client's groups get neither a code nor tokens,
// even if they were in a group before or the topology named other groups.
func TestAllowedGroups(t *testing.T) {
	t.Parallel()
	groups := []string{"writers", "admins"}
	f, dir := newLDAP(t, func(r *Request) { r.AllowedGroups = groups })
	s := f.service(f.register(1)) // requests no groups

	token := s.enters("alice")
	if c := s.claims(token); c.Groups != nil {
		t.Errorf("groups %q although the client requested none", c.Groups)
	}
	for name, connector := range map[string]string{"bob": "corp", "carol": "corp", email: "local"} {
		secret := "password of " + name
		if connector == "local" {
			secret = password
		}
		p := s.submit(s.begin("state", "verifier", at(connector)), name, secret)
		if p.status != 403 || p.location != nil || !strings.Contains(p.text, "none of the groups") {
			t.Errorf("%s: status %d, sent to %v: %s", name, p.status, p.location, p.text)
		}
	}
	if n := f.refusals(codeOutside); n != 3 {
		t.Errorf("%d audit rows of who is outside", n)
	}

	// A code that was issued before the topology named other groups.
	p := s.submit(s.begin("state", "verifier", at("corp")), "alice", "password of alice")
	groups = []string{"admins"}
	f.grant(callback)
	_, err := s.Exchange(s.ctx(), p.location.Query().Get("code"), oauth2.VerifierOption("verifier"))
	refused(t, "a code of who is outside now", err, "invalid_grant")
	groups = []string{"writers"}
	f.grant(callback)

	token, err = s.TokenSource(s.ctx(), &oauth2.Token{RefreshToken: token.RefreshToken}).Token()
	if err != nil {
		t.Fatal(err)
	}
	f.age(token)
	dir.do("ldapmodify", "dn: cn=writers,ou=groups,dc=demo\nchangetype: modify\nreplace: member\nmember: uid=carol,ou=people,dc=demo\n")
	_, err = s.TokenSource(s.ctx(), &oauth2.Token{RefreshToken: token.RefreshToken}).Token()
	refused(t, "who left the group", err, "invalid_grant")
	if _, err := s.provider.UserInfo(s.ctx(), oauth2.StaticTokenSource(token)); err == nil {
		t.Error("who left the group has an access token at /userinfo")
	}
	s.enters("carol")
}
