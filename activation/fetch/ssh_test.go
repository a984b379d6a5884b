package fetch

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"maps"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/florete/florete/internal/hostapi"
	providerssh "github.com/florete/florete/providers/ssh"
	"github.com/florete/florete/tests/kit"
	. "github.com/florete/florete/tests/kit/activationtest"
)

var alice = kit.ID("user/alice")

// TestSSHRequest checks that a request for a certificate contains a public key whose private half is
// on disk alone, readable by root. While no key is delivered, each request has another one.
func TestSSHRequest(t *testing.T) {
	h, _ := newHost(t)
	a := Attempt{Need: kit.SSHNeed(alice, "forge"), Provider: "forge", Digest: "d"}
	keys := map[string]bool{}
	for a.Answers = range 3 {
		p, err := h.pending(a)
		if err != nil {
			t.Fatal(err)
		}
		var body hostapi.SSHBody
		if err := json.Unmarshal(p.Body, &body); err != nil || body.ID != alice {
			t.Fatalf("%s: %v", p.Body, err)
		}
		own, err := ssh.ParsePrivateKey([]byte(p.PrivateKey))
		if err != nil || kit.Authorized(own.PublicKey()) != body.PublicKey || own.PublicKey().Type() != ssh.KeyAlgoED25519 {
			t.Fatalf("public key %s: %v", body.PublicKey, err)
		}
		keys[body.PublicKey] = true
		if again, err := h.pending(a); err != nil || again.PrivateKey != p.PrivateKey || !bytes.Equal(again.Body, p.Body) || again.Key != p.Key {
			t.Errorf("repeated, it is another request: %v", err)
		}
		if info, err := os.Stat(h.pendingPath(a.Need.ID)); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%v, %v", info, err)
		}
		sent, err := json.Marshal(h.request(a, p))
		if err != nil || bytes.Contains(sent, []byte("PRIVATE")) {
			t.Errorf("sent %s, %v", sent, err)
		}
	}
	if len(keys) != 3 {
		t.Errorf("%d keys for three certificates", len(keys))
	}
	a.Need = kit.SSHNeed(Node, "forge")
	if p, err := h.pending(a); err != nil || p.PrivateKey != "" || string(p.Body) != "{}" {
		t.Errorf("public keys: %s, private key %q, %v", p.Body, p.PrivateKey, err)
	}
}

// TestSSHAnswersThatAreNotOurs checks that a certificate is delivered only if it is for the key and
// the user of the request, is a user certificate without restrictions, and is valid now.
func TestSSHAnswersThatAreNotOurs(t *testing.T) {
	h, _ := newHost(t)
	a := Attempt{Need: kit.SSHNeed(alice, "forge"), Provider: "forge", Digest: "d"}
	p, err := h.pending(a)
	if err != nil {
		t.Fatal(err)
	}
	own, err := ssh.ParsePrivateKey([]byte(p.PrivateKey))
	if err != nil {
		t.Fatal(err)
	}
	authority, now := kit.NewHostKey(), time.Now()
	issue := func(change func(*ssh.Certificate)) string {
		c, err := providerssh.Certify(authority, own.PublicKey(), alice, "ursula", now, now.Add(time.Hour))
		if err != nil {
			t.Fatal(err)
		}
		change(c)
		if err := c.SignCert(rand.Reader, authority); err != nil {
			t.Fatal(err)
		}
		return string(ssh.MarshalAuthorizedKey(c))
	}
	good := issue(func(*ssh.Certificate) {})
	forged := func() string {
		c, _, _, _, err := ssh.ParseAuthorizedKey([]byte(good))
		if err != nil {
			t.Fatal(err)
		}
		c.(*ssh.Certificate).Serial++
		return string(ssh.MarshalAuthorizedKey(c))
	}
	malformed, clock := hostapi.CodeMalformed, hostapi.CodeClock
	for name, c := range map[string]struct {
		certificate string
		code        hostapi.Code
		want        string
	}{
		"none":               {"", malformed, "no key found"},
		"a private key":      {p.PrivateKey, malformed, "no key found"},
		"a public key":       {kit.Authorized(own.PublicKey()), malformed, "want one SSH certificate"},
		"two":                {good + good, malformed, "want one SSH certificate"},
		"options":            {`command="sh" ` + good, malformed, "want one SSH certificate"},
		"another key":        {issue(func(c *ssh.Certificate) { c.Key = kit.NewHostKey().PublicKey() }), malformed, "for another key"},
		"a host":             {issue(func(c *ssh.Certificate) { c.CertType = ssh.HostCert }), malformed, "want 1, a user certificate"},
		"another user":       {issue(func(c *ssh.Certificate) { c.ValidPrincipals = []string{kit.ID("user/bob").String()} }), malformed, "want spiffe://demo.flor/user/alice"},
		"another ID":         {issue(func(c *ssh.Certificate) { c.KeyId = "bob" }), malformed, "want spiffe://demo.flor/user/alice"},
		"all users":          {issue(func(c *ssh.Certificate) { c.ValidPrincipals = nil }), malformed, "want spiffe://demo.flor/user/alice"},
		"another one beside": {issue(func(c *ssh.Certificate) { c.ValidPrincipals = append(c.ValidPrincipals, "root") }), malformed, "want spiffe://demo.flor/user/alice"},
		"a critical option":  {issue(func(c *ssh.Certificate) { c.CriticalOptions = map[string]string{"force-command": "sh"} }), malformed, "force-command"},
		"for ever":           {issue(func(c *ssh.Certificate) { c.ValidBefore = ssh.CertTimeInfinity }), malformed, "does not expire"},
		"forged":             {forged(), malformed, "does not verify"},
		"expired":            {issue(func(c *ssh.Certificate) { c.ValidBefore = uint64(now.Unix()) - 1 }), clock, "set the clock"},
		"too early":          {issue(func(c *ssh.Certificate) { c.ValidAfter = uint64(now.Unix()) + 60 }), clock, "set the clock"},
	} {
		answer := hostapi.Answer{Values: map[string]string{"certificate": c.certificate}, Expires: now.Add(time.Hour).Unix()}
		e := h.complete(a, p, &answer)
		if e == nil || e.Code != c.code.Name || !strings.HasPrefix(e.Message, "answer: certificate: ") || !strings.Contains(e.Message, c.want) {
			t.Errorf("%s: %v, want %s with %q", name, e, c.code.Name, c.want)
		}
		if answer.Values["key"] != "" || e != nil && strings.Contains(e.Message, "PRIVATE") {
			t.Errorf("%s: %v, %v", name, answer.Values, e)
		}
	}
	answer := hostapi.Answer{Values: map[string]string{"certificate": good, "key": "another"}, Expires: now.Add(time.Minute).Unix()}
	if e := h.complete(a, p, &answer); e != nil {
		t.Fatal(e)
	}
	if want := map[string]string{"certificate": good, "key": p.PrivateKey}; !maps.Equal(answer.Values, want) || answer.Expires != now.Unix()+3600 {
		t.Errorf("%v, expires %d", answer.Values, answer.Expires)
	}
}

// TestSSHAuthority checks that only public keys are delivered as those of the certificate authority.
func TestSSHAuthority(t *testing.T) {
	h, _ := newHost(t)
	a := Attempt{Need: kit.SSHNeed(Node, "forge"), Provider: "forge", Digest: "d"}
	p, err := h.pending(a)
	if err != nil {
		t.Fatal(err)
	}
	line := func(k ssh.PublicKey) string { return string(ssh.MarshalAuthorizedKey(k)) }
	one, other := kit.NewHostKey(), kit.NewHostKey()
	c, err := providerssh.Certify(one, other.PublicKey(), alice, "ursula", time.Now(), time.Now().Add(time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	until := time.Now().Add(time.Minute).Unix()
	for name, text := range map[string]string{
		"none":          "",
		"rubbish":       "key\n",
		"a certificate": line(c),
		"options":       "cert-authority " + line(one.PublicKey()),
		"rubbish after": line(one.PublicKey()) + "key\n",
		"a comment":     "# key\n" + line(one.PublicKey()),
	} {
		answer := hostapi.Answer{Values: map[string]string{"ca": text}, Expires: until}
		if e := h.complete(a, p, &answer); e == nil || e.Code != hostapi.CodeMalformed.Name || !strings.HasPrefix(e.Message, "answer: ca: ") {
			t.Errorf("%s: %v", name, e)
		}
	}
	for _, text := range []string{line(one.PublicKey()), line(one.PublicKey()) + line(other.PublicKey())} {
		answer := hostapi.Answer{Values: map[string]string{"ca": text}, Expires: until}
		if e := h.complete(a, p, &answer); e != nil || answer.Values["ca"] != text || answer.Expires != until {
			t.Errorf("%q: %v", text, e)
		}
	}
}
