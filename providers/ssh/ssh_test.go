package ssh

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/internal/pubkey"
	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/internal/trust"
	"github.com/florete/florete/internal/unixtime"
	"github.com/florete/florete/providers/sealedstore"
	"github.com/florete/florete/providers/server"
	"github.com/florete/florete/providers/store"
	"github.com/florete/florete/providers/store/sqlite"
	"github.com/florete/florete/tests/kit"
	"github.com/florete/florete/tests/kit/providertest"
)

var alice = kit.ID("user/alice")

type settings struct {
	Lifetime   int `json:"lifetime"`
	Generation int `json:"generation"`
}

func newKey(t testing.TB) ssh.PublicKey {
	t.Helper()
	_, public, err := pubkey.NewSSH()
	if err != nil {
		t.Fatal(err)
	}
	return public
}

// body returns the body of a request for a certificate of an identity.
func body(id spiffe.ID, publicKey string) json.RawMessage {
	return kit.JSON(hostapi.SSHBody{ID: id, PublicKey: publicKey})
}

func suite(t *testing.T) providertest.Suite {
	public := kit.Authorized(newKey(t))
	return providertest.Suite{
		Kind: Name, Need: "ssh-user-alice", Request: document.SSHRequest{ID: alice}, Settings: settings{3600, 1},
		Body: func(*testing.T) json.RawMessage { return body(alice, public) },
		Make: func(e *providertest.Env) server.AnyKind { return server.Any(New(e.Store, e.Key)) },
	}
}

func TestConformance(t *testing.T) { providertest.Run(t, suite(t)) }

// TestNotGranted checks that a host gets no certificate for another user than the one in its grant,
// and that it cannot add names or other fields to the certificate.
func TestNotGranted(t *testing.T) {
	e := providertest.NewEnv(t, "ursula")
	s := suite(t)
	e.Runs(s.Kind, s.Settings, s.Make)
	ursula := kit.ID("node/ursula")
	e.Grant(ursula, s.Need, s.Kind, s.Request)
	e.Grant(ursula, "ssh-keys", s.Kind, struct{}{})
	e.Start()
	public := kit.Authorized(newKey(t))
	ask := func(need string, body json.RawMessage) error {
		_, err := e.Client(ursula).Do(t.Context(), hostapi.Path(Name), hostapi.Request{Need: need, Serial: providertest.Serial, Generation: 1, Body: body})
		return err
	}
	if err := ask(s.Need, body(alice, public)); err != nil {
		t.Fatal(err)
	}
	with := func(field string, value any) json.RawMessage {
		return kit.JSON(map[string]any{"id": alice, "publicKey": public, field: value})
	}
	for name, c := range map[string]struct {
		need string
		body json.RawMessage
		want hostapi.Code
	}{
		"another user":                {s.Need, body(kit.ID("user/bob"), public), hostapi.CodeMismatch},
		"the node":                    {s.Need, body(ursula, public), hostapi.CodeMismatch},
		"a need of another host":      {"ssh-user-bob", body(kit.ID("user/bob"), public), hostapi.CodeNotGranted},
		"a certificate in place of k": {"ssh-keys", body(alice, public), hostapi.CodeMismatch},
		"principals":                  {s.Need, with("principals", []string{"root"}), hostapi.CodeMismatch},
		"a lifetime":                  {s.Need, with("lifetime", 86400), hostapi.CodeMismatch},
		"a CSR beside the key":        {s.Need, with("csr", "x"), hostapi.CodeMalformed},
	} {
		t.Run(name, func(t *testing.T) { providertest.WantError(t, ask(c.need, c.body), c.want) })
	}
}

// fixture is an Authority without its server.
type fixture struct {
	t      *testing.T
	policy document.Policy
	db     store.Store
	seal   *sealedstore.Key
	*Authority
	compiled *Policy
	public   ssh.PublicKey
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	db, err := sqlite.Open(filepath.Join(t.TempDir(), "state.db"), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	key, err := sealedstore.New(sealedstore.Secret())
	if err != nil {
		t.Fatal(err)
	}
	f := &fixture{t: t, db: db, seal: key, Authority: New(db, key), public: newKey(t)}
	f.policy = document.Policy{Host: "forge", TrustDomain: kit.Domain, Grants: []document.Grant{
		{Caller: kit.ID("node/elm"), Need: "ssh-user-alice", Kind: Name, Generation: 1, Request: kit.JSON(document.SSHRequest{ID: alice})},
		{Caller: kit.ID("node/elm"), Need: "ssh-keys", Kind: Name, Generation: 1, Request: kit.JSON(document.SSHRequest{})},
	}}
	f.settings(3600, 1)
	return f
}

// settings puts other settings in force.
func (f *fixture) settings(lifetime, generation int) {
	f.t.Helper()
	f.policy.Kinds = map[string]json.RawMessage{Name: kit.JSON(settings{lifetime, generation})}
	compiled, err := f.Compile(f.policy)
	if err != nil {
		f.t.Fatal(err)
	}
	f.compiled = compiled
}

func (f *fixture) call(grant int, now time.Time) server.Call {
	g := f.policy.Grants[grant]
	return server.Call{Caller: g.Caller, Grant: g, Now: now, Request: hostapi.Request{Need: g.Need, Body: body(alice, kit.Authorized(f.public))}}
}

// answer requests and commits.
func (f *fixture) answer(grant int, now time.Time) server.Decision {
	f.t.Helper()
	d, err := f.decide(f.Authority, grant, now)
	if err != nil {
		f.t.Fatal(err)
	}
	return d
}

// decide requests from one of several processes and commits. After a conflict, it begins anew, as the
// server does.
func (f *fixture) decide(by *Authority, grant int, now time.Time) (d server.Decision, err error) {
	for {
		d, err = by.Answer(f.t.Context(), f.compiled, f.call(grant, now))
		if err == nil && d.Then != nil {
			_, err = f.db.Commit(f.t.Context(), store.Txn{If: d.If, Then: d.Then})
		}
		if !errors.Is(err, store.ErrConflict) {
			return d, err
		}
	}
}

func (f *fixture) certificate(now time.Time) *ssh.Certificate {
	f.t.Helper()
	key, _, options, rest, err := ssh.ParseAuthorizedKey([]byte(f.answer(0, now).Answer.Values["certificate"]))
	if err != nil || len(options) > 0 || len(rest) > 0 {
		f.t.Fatal(options, rest, err)
	}
	return key.(*ssh.Certificate)
}

// published returns the fingerprints of the public keys that hosts fetch at a time.
func (f *fixture) published(now time.Time) (all []string) {
	f.t.Helper()
	rest := []byte(f.answer(1, now).Answer.Values["ca"])
	for len(rest) > 0 {
		var key ssh.PublicKey
		var err error
		if key, _, _, rest, err = ssh.ParseAuthorizedKey(rest); err != nil {
			f.t.Fatal(err)
		}
		all = append(all, ssh.FingerprintSHA256(key))
	}
	return all
}

func signerOf(c *ssh.Certificate) string { return ssh.FingerprintSHA256(c.SignatureKey) }

// accepts returns the error of a server that trusts the published keys.
func accepts(published []string, c *ssh.Certificate, now time.Time) error {
	if !slices.Contains(published, signerOf(c)) {
		return fmt.Errorf("the key %s is not published", signerOf(c))
	}
	checker := ssh.CertChecker{Clock: func() time.Time { return now }}
	return checker.CheckCert(alice.String(), c)
}

// TestCertificate checks all fields of a certificate, and the audit row.
func TestCertificate(t *testing.T) {
	f := newFixture(t)
	now := time.Now()
	c := f.certificate(now)
	if err := accepts(f.published(now), c, now); err != nil {
		t.Error(err)
	}
	if !bytes.Equal(c.Key.Marshal(), f.public.Marshal()) || c.CertType != ssh.UserCert || c.SignatureKey.Type() != ssh.KeyAlgoECDSA256 {
		t.Errorf("key %s, type %d, signed by %s", kit.Authorized(c.Key), c.CertType, c.SignatureKey.Type())
	}
	if c.KeyId != alice.String() || !slices.Equal(c.ValidPrincipals, []string{alice.String()}) {
		t.Errorf("ID %q, principals %q", c.KeyId, c.ValidPrincipals)
	}
	if after, before := int64(c.ValidAfter), int64(c.ValidBefore); after != now.Add(-5*time.Minute).Unix() || before != now.Unix()+3600 {
		t.Errorf("valid from %s to %s", time.Unix(after, 0), time.Unix(before, 0))
	}
	want := map[string]string{"node@florete": "elm", "permit-X11-forwarding": "", "permit-agent-forwarding": "", "permit-port-forwarding": "", "permit-pty": "", "permit-user-rc": ""}
	if len(c.CriticalOptions) > 0 || !maps.Equal(c.Extensions, want) {
		t.Errorf("critical options %v, extensions %v", c.CriticalOptions, c.Extensions)
	}
	d := f.answer(0, now)
	key, _, _, _, err := ssh.ParseAuthorizedKey([]byte(d.Answer.Values["certificate"]))
	if err != nil {
		t.Fatal(err)
	}
	again := key.(*ssh.Certificate)
	if again.Serial == c.Serial {
		t.Errorf("two certificates of serial number %d", c.Serial)
	}
	audited := map[string]string{
		"id": alice.String(), "serial": strconv.FormatUint(again.Serial, 10), "key": signerOf(again), "until": time.Unix(now.Unix()+3600, 0).UTC().Format(time.RFC3339),
	}
	if !maps.Equal(d.Detail, audited) || d.Answer.Expires != int64(again.ValidBefore) {
		t.Errorf("detail %v, want %v; expires %d", d.Detail, audited, d.Answer.Expires)
	}
	f.settings(300, 1)
	if c := f.certificate(now); int64(c.ValidBefore) != now.Unix()+300 {
		t.Errorf("with a lifetime of 300 seconds, valid until %s", time.Unix(int64(c.ValidBefore), 0))
	}
}

// TestKeygen checks that ssh-keygen reads the certificate and the published keys as intended.
func TestKeygen(t *testing.T) {
	keygen, err := exec.LookPath("ssh-keygen")
	if err != nil {
		t.Skip("NOT RUN: no certificate is read by OpenSSH: install package openssh-client")
	}
	f := newFixture(t)
	now := time.Now()
	run := func(name, text string, args ...string) string {
		file := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		out, err := exec.CommandContext(t.Context(), keygen, append(args, "-f", file)...).CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		return string(out)
	}
	c := f.answer(0, now)
	got := run("id_ed25519-cert.pub", c.Answer.Values["certificate"], "-L")
	for _, want := range []string{
		`Type: ssh-ed25519-cert-v01@openssh\.com user certificate`,
		`Public key: ED25519-CERT ` + regexp.QuoteMeta(ssh.FingerprintSHA256(f.public)),
		`Signing CA: ECDSA ` + regexp.QuoteMeta(c.Detail["key"]) + ` \(using ecdsa-sha2-nistp256\)`,
		`Key ID: "spiffe://demo\.flor/user/alice"`,
		`Serial: ` + c.Detail["serial"],
		`Principals: \n\s+spiffe://demo\.flor/user/alice\n\s+Critical Options: \(none\)`,
		`node@florete UNKNOWN OPTION`,
		`permit-X11-forwarding\n\s+permit-agent-forwarding\n\s+permit-port-forwarding\n\s+permit-pty\n\s+permit-user-rc`,
	} {
		if !regexp.MustCompile(want).MatchString(got) {
			t.Errorf("ssh-keygen -L does not show %s:\n%s", want, got)
		}
	}
	keys := run("ca.pub", f.answer(1, now.Add(keyLife)).Answer.Values["ca"], "-l")
	if lines := strings.Split(strings.TrimSpace(keys), "\n"); len(lines) != 2 || !strings.HasPrefix(lines[0], "256 "+c.Detail["key"]+" ") || !strings.HasSuffix(lines[1], "(ECDSA)") {
		t.Errorf("ssh-keygen -l has the keys %q", lines)
	}
}

// TestRotation checks that hosts that have not fetched the keys for a week can verify each
// certificate, and that a key is published until the certificates that it signed have expired.
func TestRotation(t *testing.T) {
	f := newFixture(t)
	f.settings(86400, 1)
	begin := time.Now()
	const step = 6 * time.Hour
	var keys [][]string // published at each step
	var last *ssh.Certificate
	signers := map[string]bool{}
	for at := time.Duration(0); at < 100*24*time.Hour; at += step {
		now := begin.Add(at)
		keys = append(keys, f.published(now))
		if n := len(keys[len(keys)-1]); n > 2 {
			t.Fatalf("after %s: %d keys", at, n)
		}
		c := f.certificate(now)
		signers[signerOf(c)] = true
		for age := 0; age < len(keys) && time.Duration(age)*step < announced; age++ {
			if err := accepts(keys[len(keys)-1-age], c, now); err != nil {
				t.Fatalf("after %s: a host with the keys of %d steps ago: %v", at, age, err)
			}
		}
		// The newest certificate of each key is used until it expires.
		if last != nil && signerOf(c) != signerOf(last) {
			until := time.Unix(int64(last.ValidBefore), 0).Add(-time.Second)
			if err := accepts(f.published(until), last, until); err != nil {
				t.Errorf("after %s: %v", at, err)
			}
			if after := until.Add(24 * time.Hour); slices.Contains(f.published(after), signerOf(last)) {
				t.Errorf("after %s: the key is published though its certificates have ended", at)
			}
		}
		last = c
	}
	if len(signers) != 4 {
		t.Errorf("%d keys signed in a hundred days", len(signers))
	}
}

// TestRotationUnderLoad checks that while two processes with one store answer many hosts at once, a
// rotation makes one key, and each certificate is signed with a key that hosts have known for a week.
func TestRotationUnderLoad(t *testing.T) {
	f := newFixture(t)
	processes := []*Authority{f.Authority, New(f.db, f.seal)}
	begin := time.Now()
	var signers []string
	known := f.published(begin) // by hosts that fetch the keys once a week
	for week := range 14 {
		now := begin.Add(time.Duration(week) * announced)
		var hosts sync.WaitGroup
		var mu sync.Mutex
		var keys []string
		for host := range 32 {
			hosts.Go(func() {
				by := processes[host%2]
				d, err := f.decide(by, 0, now)
				if err != nil {
					t.Error(err)
					return
				}
				key, _, _, _, err := ssh.ParseAuthorizedKey([]byte(d.Answer.Values["certificate"]))
				if err == nil {
					err = accepts(known, key.(*ssh.Certificate), now)
				}
				if err != nil {
					t.Errorf("week %d: %v", week, err)
					return
				}
				ca, err := f.decide(by, 1, now)
				mu.Lock()
				defer mu.Unlock()
				keys = append(keys, ca.Answer.Values["ca"])
				if signer := signerOf(key.(*ssh.Certificate)); !slices.Contains(signers, signer) {
					signers = append(signers, signer)
				}
				if err != nil {
					t.Error(err)
				}
			})
		}
		hosts.Wait()
		if slices.Sort(keys); len(slices.Compact(keys)) != 1 {
			t.Errorf("week %d: hosts have different keys", week)
		}
		known = f.published(now)
	}
	if len(signers) < 3 || len(signers) > 4 {
		t.Errorf("%d keys signed in 14 weeks", len(signers))
	}
}

// TestShorterLifetime checks that certificates stay valid if the lifetime of later ones is reduced.
func TestShorterLifetime(t *testing.T) {
	f := newFixture(t)
	f.settings(86400, 1)
	now := time.Now()
	f.published(now)
	f.published(now.Add(keyLife))
	last := now.Add(keyLife + announced - time.Second)
	c := f.certificate(last)
	f.settings(300, 1)
	until := last.Add(24*time.Hour - time.Second)
	if other := f.certificate(until); signerOf(other) == signerOf(c) {
		t.Fatal("the next key does not sign yet")
	}
	if err := accepts(f.published(until), c, until); err != nil {
		t.Error(err)
	}
}

// TestGeneration checks that a higher generation ends all certificates that were signed before, and
// that a lower generation does not restore them.
func TestGeneration(t *testing.T) {
	f := newFixture(t)
	now := time.Now()
	f.published(now)
	now = now.Add(keyLife)
	old, both := f.certificate(now), f.published(now)
	if len(both) != 2 {
		t.Fatalf("published %q, want the next key as well", both)
	}
	for _, generation := range []int{2, 1} {
		f.settings(3600, generation)
		published := f.published(now)
		if slices.ContainsFunc(published, func(k string) bool { return slices.Contains(both, k) }) {
			t.Errorf("generation %d: a key of generation 1 is published", generation)
		}
		if err := accepts(published, old, now); err == nil {
			t.Errorf("generation %d: a certificate of generation 1 is accepted", generation)
		}
		if err := accepts(published, f.certificate(now), now); err != nil {
			t.Errorf("generation %d: %v", generation, err)
		}
	}
	v, err := f.InForce(t.Context())
	if err != nil || v.Digest != f.published(now)[0] || v.Detail["generation"] != "2" {
		t.Errorf("in force: %+v, %v", v, err)
	}
}

// TestSealed checks that the store contains no readable key.
func TestSealed(t *testing.T) {
	f := newFixture(t)
	f.certificate(time.Now())
	ring, _, err := f.keys.Read(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	e, err := f.db.Get(t.Context(), keysAt)
	if err != nil || bytes.Contains(e.Value, ring[0].Private) || bytes.Contains(e.Value, []byte(ring[0].ID)) {
		t.Errorf("the record %q, %v", e.Value, err)
	}
	newer, err := sealedstore.New(sealedstore.Secret())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := New(f.db, newer).Answer(t.Context(), f.compiled, f.call(0, time.Now())); !errors.Is(err, sealedstore.ErrUnreadable) {
		t.Errorf("with another sealing key: %v", err)
	}
}

func TestRevoked(t *testing.T) {
	f := newFixture(t)
	now := time.Now()
	for _, c := range []struct {
		entry trust.Revocation
		class hostapi.Class
	}{
		{trust.Revocation{ID: alice}, hostapi.Denied},
		{trust.Revocation{ID: kit.ID("node/elm")}, hostapi.Denied},
		{trust.Revocation{ID: alice, Suspended: true}, hostapi.Transient},
		{trust.Revocation{ID: alice, ValidAfter: unixtime.Time{Time: now.Add(time.Minute)}}, hostapi.Transient},
		// Hosts see the time of issue in whole seconds.
		{trust.Revocation{ID: alice, ValidAfter: unixtime.Time{Time: now.Truncate(time.Second)}}, hostapi.Transient},
	} {
		call := f.call(0, now)
		call.Revoked = revocations(t, c.entry)
		_, err := f.Answer(t.Context(), f.compiled, call)
		providertest.WantError(t, err, hostapi.Code{Name: hostapi.CodeRevoked.Name, Class: c.class})
		call = f.call(1, now)
		call.Revoked = revocations(t, c.entry)
		if _, err := f.Answer(t.Context(), f.compiled, call); err != nil {
			t.Errorf("public keys: %v", err)
		}
	}
	call := f.call(0, now)
	call.Revoked = revocations(t, trust.Revocation{ID: alice, ValidAfter: unixtime.Time{Time: now.Add(-time.Minute)}})
	if _, err := f.Answer(t.Context(), f.compiled, call); err != nil {
		t.Errorf("reinstated: %v", err)
	}
}

func revocations(t *testing.T, entries ...trust.Revocation) *trust.Revocations {
	t.Helper()
	list, err := trust.SignedRevocations{List: string(kit.JSON(trust.Revocations{
		Schema: trust.RevocationsSchema, Format: document.NewestFormat, Cluster: "demo", Number: 1, Entries: entries, Certificates: []trust.RevokedCertificate{},
	}))}.Open()
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// TestKeys checks which public keys are certified.
func TestKeys(t *testing.T) {
	f := newFixture(t)
	public := func(key any, err error) ssh.PublicKey {
		if err == nil {
			key, err = ssh.NewPublicKey(key)
		}
		if err != nil {
			t.Fatal(err)
		}
		return key.(ssh.PublicKey)
	}
	curve := func(c elliptic.Curve) string {
		key, err := ecdsa.GenerateKey(c, rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		return kit.Authorized(public(&key.PublicKey, nil))
	}
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	small := make(ed25519.PublicKey, ed25519.PublicKeySize)
	small[0] = 1
	good := kit.Authorized(f.public)
	_, blob, _ := strings.Cut(good, " ")
	securityKey := ssh.Marshal(struct {
		Name, Key, Application string
	}{ssh.KeyAlgoSKED25519, string(newKey(t).(ssh.CryptoPublicKey).CryptoPublicKey().(ed25519.PublicKey)), "ssh:"})
	sk, err := ssh.ParsePublicKey(securityKey)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ key, want string }{
		"Ed25519":           {good, ""},
		"P-256":             {curve(elliptic.P256()), ""},
		"P-384":             {curve(elliptic.P384()), ""},
		"P-521":             {curve(elliptic.P521()), "key of type ecdsa-sha2-nistp521"},
		"RSA":               {kit.Authorized(public(&rsaKey.PublicKey, nil)), "key of type ssh-rsa"},
		"a security key":    {kit.Authorized(sk), "key of type sk-ssh-ed25519@openssh.com"},
		"a certificate":     {kit.Authorized(f.certificate(time.Now())), "key of type ssh-ed25519-cert-v01@openssh.com"},
		"small order":       {kit.Authorized(public(small, nil)), "of small order"},
		"none":              {"", "no key found"},
		"rubbish":           {"ssh-ed25519 AAAA", "publicKey: "},
		"a comment":         {good + " alice@elm", "more than the type and the key"},
		"options":           {`command="sh" ` + good, "more than the type and the key"},
		"two":               {good + "\n" + good, "more than the type and the key"},
		"another type":      {"ssh-rsa " + blob, "publicKey: "},
		"a line break":      {good + "\n", "more than the type and the key"},
		"space before it":   {" " + good, "more than the type and the key"},
		"a comment line":    {"#\n" + good, "more than the type and the key"},
		"two spaces in it":  {strings.Replace(good, " ", "  ", 1), "more than the type and the key"},
		"a carriage return": {good + "\r", "more than the type and the key"},
	} {
		call := f.call(0, time.Now())
		call.Request.Body = body(alice, c.key)
		_, err := f.Answer(t.Context(), f.compiled, call)
		if c.want == "" {
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
		providertest.WantError(t, err, hostapi.CodeMalformed)
	}
}

func TestPolicyRefused(t *testing.T) {
	f := newFixture(t)
	for request, want := range map[string]string{
		`{"id":"spiffe://evil.flor/user/alice"}`:                       "want a user of demo.flor",
		`{"id":"spiffe://demo.flor/node/elm"}`:                         "want a user",
		`{"id":"spiffe://demo.flor/user/alice","principals":["root"]}`: "principals",
	} {
		f.policy.Grants[0].Request = json.RawMessage(request)
		if _, err := f.Compile(f.policy); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", request, err, want)
		}
	}
	f.policy.Grants = nil
	for _, lifetime := range []int{0, 299, 86401, -1} {
		f.policy.Kinds[Name] = kit.JSON(settings{lifetime, 1})
		if _, err := f.Compile(f.policy); err == nil || !strings.Contains(err.Error(), "want 300 to 86400 seconds") {
			t.Errorf("lifetime %d: %v", lifetime, err)
		}
	}
}
