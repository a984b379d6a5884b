package sshlogin_test

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/florete/florete/agent/sshlogin"
	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostdir"
	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/internal/trust"
	"github.com/florete/florete/internal/unixtime"
	"github.com/florete/florete/nix/operator/revocation"
	"github.com/florete/florete/tests/kit"
)

var (
	alice, bob = kit.ID("user/alice"), kit.ID("user/bob")
	shell      = kit.ID("service/eu/shell")
	signingKey = kit.SigningKey("demo-1")
)

// certificate returns a certificate as a provider issues it, for an hour from now on. The function
// change may change it before it is signed.
func certificate(key ssh.PublicKey, ca ssh.Signer, id spiffe.ID, change func(*ssh.Certificate)) *ssh.Certificate {
	now := time.Now()
	c := &ssh.Certificate{
		Key: key, CertType: ssh.UserCert, Serial: 7, KeyId: id.String(), ValidPrincipals: []string{id.String()},
		ValidAfter: uint64(now.Add(-trust.Backdated).Unix()), ValidBefore: uint64(now.Add(time.Hour).Unix()),
		Permissions: ssh.Permissions{Extensions: map[string]string{"permit-pty": "", document.SSHExtensionNode: "laptop"}},
	}
	if change != nil {
		change(c)
	}
	if err := c.SignCert(rand.Reader, ca); err != nil {
		panic(err)
	}
	return c
}

// accept puts a manifest with an allow list in force, as activation does. The argument reach
// contains the services that the host reaches.
func accept(l hostdir.Layout, record *document.Record, allow []document.Allow, reach ...document.Reachable) {
	m := document.Manifest{
		Cluster: "demo", Host: "eu", TrustDomain: kit.Domain, Identity: document.Identity{ID: kit.ID("node/eu"), SSHHostKey: "ssh-ed25519 AAAA"},
		Providers: map[string]map[string]document.Provider{},
		Forwarder: document.Forwarder{Publish: []document.Published{{ID: shell, Upstream: "127.0.0.1:22", Remote: document.RemoteSSH, Allow: allow, Record: record}}, Reach: reach, Callers: []document.Caller{{ID: alice, UIDs: []uint32{uidAlice}}}},
	}
	kit.Swap(hostdir.Current(l.Documents()), kit.Document(time.Now().UnixNano(), m).Files())
}

func revoke(l hostdir.Layout, targets ...revocation.Target) {
	kit.WriteRevocations(l.Revocations(), kit.Revocations(2, signingKey, targets...))
}

func logins(accounts ...string) (all []document.Login) {
	for _, a := range accounts {
		all = append(all, document.Login{Account: a})
	}
	return all
}

func TestPrincipal(t *testing.T) {
	now := time.Now()
	past, future := unixtime.Of(now.Add(-time.Second)), unixtime.Of(now.Add(time.Hour))
	allow := func(a ...document.Allow) func(hostdir.Layout) { return func(l hostdir.Layout) { accept(l, nil, a) } }
	standard := allow(document.Allow{ID: alice, Logins: logins("deploy")}, document.Allow{ID: bob, Logins: logins("other")})
	revoked := func(targets ...revocation.Target) func(hostdir.Layout) {
		return func(l hostdir.Layout) { standard(l); revoke(l, targets...) }
	}
	for name, x := range map[string]struct {
		host    func(hostdir.Layout)
		account string
		change  func(*ssh.Certificate)
		want    string // part of the reason; empty if the login is permitted
	}{
		"permitted":                 {standard, "deploy", nil, ""},
		"another account":           {standard, "root", nil, "no login as root"},
		"account of another":        {standard, "other", nil, "no login as other"},
		"no account":                {standard, "", nil, "no login as"},
		"no manifest":               {func(hostdir.Layout) {}, "deploy", nil, "manifest"},
		"reaches, and may not":      {allow(document.Allow{ID: alice}), "deploy", nil, "no login"},
		"until later":               {allow(document.Allow{ID: alice, Logins: []document.Login{{Account: "deploy", Until: future}}}), "deploy", nil, ""},
		"login has ended":           {allow(document.Allow{ID: alice, Logins: []document.Login{{Account: "deploy", Until: past}}}), "deploy", nil, "no login"},
		"access has ended":          {allow(document.Allow{ID: alice, Until: past, Logins: logins("deploy")}), "deploy", nil, "no login"},
		"another is revoked":        {revoked(revocation.Target{ID: bob}), "deploy", nil, ""},
		"revoked":                   {revoked(revocation.Target{ID: alice}), "deploy", nil, "user/alice is revoked"},
		"node revoked":              {revoked(revocation.Target{ID: kit.ID("node/laptop")}), "deploy", nil, "node/laptop, which was given user/alice, is revoked"},
		"older ones revoked":        {revoked(revocation.Target{Before: []spiffe.ID{alice}}), "deploy", old, "issued before"},
		"older ones revoked, newer": {revoked(revocation.Target{Before: []spiffe.ID{alice}}), "deploy", newer, ""},
		"suspended": {func(l hostdir.Layout) {
			standard(l)
			kit.WriteRevocations(l.Revocations(), kit.Suspensions(2, signingKey, alice))
		}, "deploy", newer, "suspended"},
		"list damaged": {func(l hostdir.Layout) {
			standard(l)
			kit.WriteRevocations(l.Revocations(), trust.SignedRevocations{List: "{"})
		}, "deploy", nil, "revocation list"},
		"host certificate":           {standard, "deploy", func(c *ssh.Certificate) { c.CertType = ssh.HostCert }, "not a user certificate"},
		"key ID of another":          {standard, "deploy", func(c *ssh.Certificate) { c.KeyId = bob.String() }, "want only the key ID"},
		"principal of another":       {standard, "other", func(c *ssh.Certificate) { c.ValidPrincipals[0] = bob.String() }, "want only the key ID"},
		"two principals":             {standard, "deploy", func(c *ssh.Certificate) { c.ValidPrincipals = append(c.ValidPrincipals, bob.String()) }, "want only the key ID"},
		"no principal":               {standard, "deploy", func(c *ssh.Certificate) { c.ValidPrincipals = nil }, "want only the key ID"},
		"account as principal":       {standard, "deploy", named("deploy"), "key ID"},
		"options in the principal":   {standard, "deploy", named(`environment="X=1" ` + alice.String()), "key ID"},
		"two lines in the principal": {standard, "deploy", named(alice.String() + "\nroot"), "key ID"},
		"a node":                     {standard, "deploy", named(kit.ID("node/eu").String()), "not a user of demo.flor"},
		"a foreign user":             {standard, "deploy", named("spiffe://other.flor/user/alice"), "not a user of demo.flor"},
		"no node":                    {standard, "deploy", func(c *ssh.Certificate) { c.Extensions = nil }, "extension node@florete"},
		"wrong node":                 {standard, "deploy", func(c *ssh.Certificate) { c.Extensions[document.SSHExtensionNode] = "a/b" }, "extension node@florete"},
		"valid for ever":             {standard, "deploy", func(c *ssh.Certificate) { c.ValidBefore = ssh.CertTimeInfinity }, "want both times"},
	} {
		t.Run(name, func(t *testing.T) {
			l := hostdir.Layout(t.TempDir())
			x.host(l)
			c := certificate(kit.NewHostKey().PublicKey(), kit.NewHostKey(), alice, x.change)
			id, _, err := sshlogin.Principal(l, x.account, base64.StdEncoding.EncodeToString(c.Marshal()), now)
			switch {
			case x.want == "" && (err != nil || id.String() != c.KeyId):
				t.Errorf("%v, %v", id, err)
			case x.want != "" && (err == nil || !id.IsZero() || !strings.Contains(err.Error(), x.want)):
				t.Errorf("%v, %v, want an error with %q", id, err, x.want)
			}
		})
	}
}

// old and newer change a certificate to one that was issued two hours ago, or that will be issued
// in an hour. A revocation of older certificates takes effect for the first alone.
func old(c *ssh.Certificate)   { c.ValidAfter -= 7200 }
func newer(c *ssh.Certificate) { c.ValidAfter += 3600; c.ValidBefore += 7200 }

func named(name string) func(*ssh.Certificate) {
	return func(c *ssh.Certificate) { c.KeyId, c.ValidPrincipals = name, []string{name} }
}

func TestPrincipalOfAKey(t *testing.T) {
	l := hostdir.Layout(t.TempDir())
	accept(l, nil, []document.Allow{{ID: alice, Logins: logins("deploy")}})
	for _, text := range []string{"", "?", base64.StdEncoding.EncodeToString(kit.NewHostKey().PublicKey().Marshal())} {
		if id, _, err := sshlogin.Principal(l, "deploy", text, time.Now()); err == nil {
			t.Errorf("%q: %s", text, id)
		}
	}
}

// FuzzPrincipal checks that a principal is one word, and is the one of the certificate.
func FuzzPrincipal(f *testing.F) {
	l := hostdir.Layout(f.TempDir())
	accept(l, nil, []document.Allow{{ID: alice, Logins: logins("deploy")}})
	c := certificate(kit.NewHostKey().PublicKey(), kit.NewHostKey(), alice, nil)
	f.Add(c.Marshal())
	for _, name := range []string{"deploy", alice.String() + "\n", bob.String()} {
		named(name)(c)
		f.Add(c.Marshal())
	}
	f.Fuzz(func(t *testing.T, wire []byte) {
		id, _, err := sshlogin.Principal(l, "deploy", base64.StdEncoding.EncodeToString(wire), time.Now())
		if err == nil && (id != alice || !bytes.Contains(wire, []byte(id.String()))) {
			t.Errorf("%q has the principal %q", wire, id)
		}
	})
}

func TestConfig(t *testing.T) {
	for _, x := range []struct {
		config                 sshlogin.Config
		principals, knownHosts string
	}{
		{
			sshlogin.Config{Layout: "/var/lib/florete", Program: "/usr/bin/flor"},
			"/usr/bin/flor ssh principals -- %u %k", "/usr/bin/flor ssh known-hosts -- %H",
		},
		{
			sshlogin.Config{Instance: "blue", Layout: "/var/lib/florete_blue", Program: "/usr/bin/flor"},
			"/usr/bin/flor --instance=blue ssh principals -- %u %k", "/usr/bin/flor --instance=blue ssh known-hosts -- %H",
		},
		{
			sshlogin.Config{Layout: "/srv/state", Program: "/opt/flor"},
			"/opt/flor ssh principals --state=/srv/state -- %u %k", "/opt/flor ssh known-hosts --state=/srv/state -- %H",
		},
	} {
		c := x.config
		c.TrustDomain = kit.Domain
		server, client := c.Server(), c.Client()
		for want, text := range map[string]string{
			"\tAuthorizedPrincipalsCommand " + x.principals + "\n":                                       server,
			"\tTrustedUserCAKeys " + string(c.Layout) + "/needs/ssh-keys/current/ca.pub\n":               server,
			"\tKnownHostsCommand " + x.knownHosts + "\n":                                                 client,
			"Host *.demo.flor.rete\n":                                                                    client,
			"\tIdentityFile " + string(c.Layout) + "/needs/ssh-user-%u/current/id_ed25519\n":             client,
			"\tCertificateFile " + string(c.Layout) + "/needs/ssh-user-%u/current/id_ed25519-cert.pub\n": client,
		} {
			if !strings.Contains(text, want) {
				t.Errorf("no %q in:\n%s", want, text)
			}
		}
		for _, text := range []string{server, client} {
			if got := sshlogin.ProgramIn(text); got != c.Program {
				t.Errorf("program %q in:\n%s", got, text)
			}
		}
	}
	if p := sshlogin.ProgramIn("KnownHostsCommand /usr/bin/other ssh names %H\n"); p != "" {
		t.Error(p)
	}
}
