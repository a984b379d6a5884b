package attacks

import (
	"context"
	"crypto/tls"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nix-community/go-nix/pkg/narinfo/signature"
	"golang.org/x/crypto/ssh"

	"github.com/florete/florete/agent/status"
	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/internal/hostdir"
	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/internal/trust"
	"github.com/florete/florete/nix/operator/revocation"
	"github.com/florete/florete/tests/kit"
	"github.com/florete/florete/tests/local"
)

// within is the time within which every reachable host must refuse an identity after its
// revocation.
const within = 5 * time.Second

// TestRevocation checks that a revoked identity does not return until an operator reinstates it.
func TestRevocation(t *testing.T) {
	c := start(t)
	const node, carol = "spiffe://demo.flor/node/c", "user/carol"
	stolen := c.svid(t, c.c, "cert-user-carol")
	live, err := local.Hold(t.Context(), c.b.Manifest.Forwarder.Listen[0], kit.ID("service/echo"), stolen)
	if err != nil {
		t.Fatal(err)
	}
	before := c.offered(t)
	number := int64(0) // number of the list that other tests left
	if before.List != "" {
		list, err := before.Open()
		if err != nil {
			t.Fatal(err)
		}
		number = list.Number
	}
	by := func(list int64) string { return fmt.Sprintf("by revocation list %d", number+list) }
	first := c.revoke(t, before, func(l *trust.Revocations) { revocation.Revoke(l, revocation.Target{ID: kit.ID(carol)}) })
	began := time.Now()
	if err := c.offer(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	if took := live.Ended(within).Sub(began); took > within {
		t.Fatalf("a live connection of %s goes on %s after it was revoked", carol, took)
	} else {
		t.Logf("a live connection was cut after %s", took)
	}
	c.waitList(t, c.p, number+1)
	c.wantRow(t, time.Time{}, local.Decision{Kind: "control", Decision: "granted", Code: "revoke", Message: fmt.Sprintf("revocation list %d is offered to all hosts: revoke spiffe://demo.flor/%s", number+1, carol)})
	run(t, []attack{
		{
			name:    "a revoked user's certificate at a forwarder",
			try:     func(t *testing.T, c *cluster) error { return c.knock(t.Context(), "echo", stolen) },
			refusal: "bad certificate",
		},
		{
			name: "another certificate of a revoked user",
			try: func(t *testing.T, c *cluster) error {
				return c.need(t, c.c, "cert-user-carol", func(*hostapi.Client, *hostapi.Request) {})
			},
			refusal: "user/carol is revoked, " + by(1),
			row:     local.Decision{Caller: node, Need: "cert-user-carol", Decision: "denied", Code: hostapi.CodeRevoked.Name},
		},
	})

	restore := c.backup(t, "config")
	key, err := ssh.ParsePrivateKey(kit.ReadFile(c.c.HostKey()))
	if err != nil {
		t.Fatal(err)
	}
	second := c.revoke(t, first, func(l *trust.Revocations) {
		revocation.Revoke(l, revocation.Target{ID: kit.ID("node/c"), Keys: []string{ssh.FingerprintSHA256(key.PublicKey())}})
	})
	if err := c.offer(t.Context(), second); err != nil {
		t.Fatal(err)
	}
	c.waitList(t, c.p, number+2)
	c.waitList(t, c.b, number+2)
	denied := func(need string) local.Decision {
		return local.Decision{Caller: node, Need: need, Decision: "denied", Code: hostapi.CodeRevoked.Name}
	}
	refused := []attack{
		{
			name: "a revoked node renews",
			try: func(t *testing.T, c *cluster) error {
				return c.need(t, c.c, "cert-node", func(*hostapi.Client, *hostapi.Request) {})
			},
			refusal: "is revoked, " + by(2), row: local.Decision{Caller: node, Decision: "denied", Code: hostapi.CodeRevoked.Name},
		},
		{
			name:    "a revoked node enrols again by its SSH host key",
			try:     func(t *testing.T, c *cluster) error { return c.enrol(t, c.c) },
			refusal: "is revoked, " + by(2), row: denied("cert-node"),
		},
		{
			name: "documents for a revoked node",
			try: func(t *testing.T, c *cluster) error {
				_, err := c.client(t, c.c, "config").Artifact(t.Context())
				return err
			},
			refusal: "node/c is revoked", row: local.Decision{Caller: node, Kind: "config", Decision: "denied", Code: hostapi.CodeRevoked.Name},
		},
		{
			name: "a certificate that a revoked node was given",
			try: func(t *testing.T, c *cluster) error {
				return c.knock(t.Context(), "echo", c.svid(t, c.c, "cert-user-alice"))
			},
			refusal: "bad certificate",
		},
	}
	run(t, refused)
	run(t, []attack{
		{
			name:    "an older list",
			try:     func(t *testing.T, c *cluster) error { return c.offer(t.Context(), first) },
			refusal: fmt.Sprintf("revocation list %d is offered here, this is %d: its number never goes back", number+2, number+1),
		},
		{
			name: "a list signed by another key",
			try: func(t *testing.T, c *cluster) error {
				return c.offer(t.Context(), kit.Revocations(number+9, kit.SigningKey("sec-1")))
			},
			refusal: "cluster",
		},
		{
			name: "a list whose entry was removed",
			try: func(t *testing.T, c *cluster) error {
				s := second
				s.List = strings.Replace(strings.Replace(s.List, fmt.Sprintf(`"number":%d`, number+2), fmt.Sprintf(`"number":%d`, number+3), 1), "node/c", "node/x", 1)
				return c.offer(t.Context(), s)
			},
			refusal: "does not verify with any pinned key",
		},
	})

	// A provider with an old database takes the newer list from its own host.
	restore()
	kit.Succeeds(t, "the restored provider to take the list", func() error {
		if is := c.offered(t); is.List != second.List {
			return fmt.Errorf("the restored provider offers %+v", is)
		}
		return nil
	})
	for i := range refused {
		refused[i].name += ", from a restored database"
	}
	run(t, refused)

	// A provider whose whole host is restored to an older state offers the older list. No host
	// accepts that list, and the provider issues nothing until it has the newest list.
	if err := c.p.Stop("activate", syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	kit.WriteRevocations(c.p.Layout().Revocations(), first)
	for _, kind := range kinds {
		if err := c.p.Provide(kind); err != nil {
			t.Fatal(err)
		}
	}
	restore()
	if err := c.p.Activate(); err != nil {
		t.Fatal(err)
	}
	run(t, []attack{
		{
			name: "a revoked node enrols at a host that was restored",
			try: func(t *testing.T, c *cluster) (err error) {
				kit.Eventually(t, "the provider to decide", func() bool {
					err = c.enrol(t, c.c)
					return hostapi.AsError(err).Code != hostapi.CodeUnavailable.Name
				})
				return err
			},
			refusal: fmt.Sprintf("revocation list %d is in force here, and there is list %d", number+1, number+2),
			row:     local.Decision{Caller: node, Need: "cert-node", Decision: "transient", Code: hostapi.CodeListBehind.Name},
		},
	})
	if got := c.offered(t); got.List != first.List {
		t.Fatalf("the restored provider offers %+v", got)
	}
	if err := c.offer(t.Context(), signed(kit.ReadFile(c.b.Layout().Revocations()))); err != nil {
		t.Errorf("the list that b has is not supplied: %v", err)
	}
	c.waitList(t, c.p, number+2)
	beside := c.revoke(t, c.revoke(t, first, func(l *trust.Revocations) {
		entries, _ := second.Open()
		l.Entries = entries.Entries
	}), func(*trust.Revocations) {})
	run(t, []attack{{
		name:    "a list that continues another one beside that in force, and drops nothing",
		try:     func(t *testing.T, c *cluster) error { return c.offer(t.Context(), beside) },
		refusal: fmt.Sprintf("revocation list %d does not continue list %d of", number+3, number+2),
	}})
	for i := range refused {
		refused[i].name += ", and after the list was supplied"
	}
	run(t, refused)

	third := c.revoke(t, second, func(l *trust.Revocations) {
		for _, id := range []string{carol, "node/c"} {
			if err := revocation.Reinstate(l, revocation.Target{ID: kit.ID(id)}); err != nil {
				t.Error(err)
			}
		}
	})
	if err := c.offer(t.Context(), third); err != nil {
		t.Fatal(err)
	}
	c.wantRow(t, time.Time{}, local.Decision{Kind: "control", Decision: "granted", Code: "reinstate", Message: "spiffe://demo.flor/" + carol})
	c.waitList(t, c.p, number+3)
	c.waitList(t, c.b, number+3)
	run(t, []attack{
		{
			name:    "the stolen certificate after a reinstatement",
			try:     func(t *testing.T, c *cluster) error { return c.knock(t.Context(), "echo", stolen) },
			refusal: "bad certificate",
		},
	})
	c.crl(t, "cert-user-carol", stolen)
	c.refetch(t, c.c, "cert-node")
	c.waitList(t, c.c, number+3)
	kit.Succeeds(t, "c to be reinstated", func() error {
		err := c.knock(t.Context(), "echo", c.svid(t, c.c, "cert-user-carol"))
		_, problems := hostdir.LoadSVIDs(c.c.Layout(), c.c.Manifest, &hostdir.SVIDSet{})
		if len(problems) > 0 {
			err = errors.Join(err, fmt.Errorf("problems %v", problems))
		}
		return errors.Join(err, c.c.Unfulfilled())
	})
}

// TestSuspendedHost checks a host that was reinstated and later suspended. Certificates that were
// issued in between must be useless: the host can obtain and reach nothing with them.
func TestSuspendedHost(t *testing.T) {
	c := start(t)
	const node = "spiffe://demo.flor/node/c"
	id := kit.ID("node/c")
	number := int64(0)
	was := c.offered(t)
	offer := func(change func(*trust.Revocations) error) {
		t.Helper()
		was = c.revoke(t, was, func(l *trust.Revocations) {
			if err := change(l); err != nil {
				t.Fatal(err)
			}
			number = l.Number
		})
		if err := c.offer(t.Context(), was); err != nil {
			t.Fatal(err)
		}
		c.waitList(t, c.p, number)
		c.waitList(t, c.b, number)
	}
	offer(func(l *trust.Revocations) error {
		revocation.Revoke(l, revocation.Target{Before: []spiffe.ID{id}})
		return nil
	})
	c.refetch(t, c.c, "cert-node")
	kit.Succeeds(t, "c by a certificate of since then", func() error { return c.knock(t.Context(), "echo", c.svid(t, c.c, "cert-node")) })
	svid := c.svid(t, c.c, "cert-node")
	live, err := local.Hold(t.Context(), c.b.Manifest.Forwarder.Listen[0], kit.ID("service/echo"), svid)
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	offer(func(l *trust.Revocations) error { return revocation.Suspend(l, id) })
	if took := live.Ended(within).Sub(began); took > within {
		t.Errorf("a live connection of a suspended host goes on %s after", took)
	}
	const refusal = "node/c is suspended, by revocation list"
	run(t, []attack{
		{name: "a suspended host at a forwarder", try: func(t *testing.T, c *cluster) error { return c.knock(t.Context(), "echo", svid) }, refusal: "bad certificate"},
		{
			name: "a suspended host renews",
			try: func(t *testing.T, c *cluster) error {
				return c.need(t, c.c, "cert-node", func(*hostapi.Client, *hostapi.Request) {})
			},
			refusal: refusal, row: local.Decision{Caller: node, Decision: "transient", Code: hostapi.CodeRevoked.Name},
		},
		{
			name: "a suspended host enrols again by its SSH host key", try: func(t *testing.T, c *cluster) error { return c.enrol(t, c.c) },
			refusal: refusal, row: local.Decision{Caller: node, Need: "cert-node", Decision: "transient", Code: hostapi.CodeRevoked.Name},
		},
	})
	offer(func(l *trust.Revocations) error { return revocation.Unsuspend(l, id) })
	kit.Succeeds(t, "c once it is resumed", func() error { return c.knock(t.Context(), "echo", svid) })
}

// signed decodes a signed revocation list from the content of its file.
func signed(b []byte) trust.SignedRevocations {
	s, _, err := revocation.Supply(b)
	if err != nil {
		panic(err)
	}
	return s
}

// revoke signs the successor of a revocation list, as florctl does.
func (c *cluster) revoke(t *testing.T, last any, change func(*trust.Revocations)) trust.SignedRevocations {
	t.Helper()
	key, err := signature.LoadSecretKey(strings.TrimSpace(string(kit.ReadFile(c.Path("operator", "signing.key")))))
	if err != nil {
		t.Fatal(err)
	}
	var was *trust.Revocations
	if s, ok := last.(trust.SignedRevocations); ok && s.List != "" {
		if was, err = s.Open(); err != nil {
			t.Fatal(err)
		}
	}
	next := revocation.Next(was, "sec", time.Now(), revocation.Lifetime)
	change(next)
	s, err := revocation.Sign(next, key)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// offer makes provider p offer a revocation list to hosts.
func (c *cluster) offer(ctx context.Context, s trust.SignedRevocations) error {
	return c.control(ctx, s, new(any), "POST", "/v1/revocations")
}

// offered returns the revocation list that provider p offers.
func (c *cluster) offered(t *testing.T) trust.SignedRevocations {
	t.Helper()
	var r struct{ Signed trust.SignedRevocations }
	if err := c.control(t.Context(), nil, &r, "GET", "/v1/revocations"); err != nil {
		t.Fatal(err)
	}
	return r.Signed
}

// waitList waits until a host has a revocation list and its forwarder has read it. A provider needs
// no wait, because it reads the list for each decision.
func (c *cluster) waitList(t *testing.T, h *local.Host, number int64) {
	t.Helper()
	kit.Succeeds(t, "the list", func() error {
		list, err := trust.ReadRevocations(h.Layout().Revocations(), nil)
		if err == nil && list.InForce() != number {
			err = fmt.Errorf("%s has list %d, want %d", h.Name, list.InForce(), number)
		}
		if r, _, silent := status.Fetch(t.Context(), h.Socket()); err == nil && silent == nil && (r.Revocations == nil || r.Revocations.Number != number) {
			err = fmt.Errorf("the forwarder of %s has list %+v, want %d", h.Name, r.Revocations, number)
		}
		return err
	})
}

// backup copies the state of the process of provider p for a kind. It returns a function
// that restores the copy.
func (c *cluster) backup(t *testing.T, kind string) (restore func()) {
	t.Helper()
	dir := filepath.Join(c.p.Dir, "provider", kind)
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	restart := func(meanwhile func()) {
		must(c.p.Stop(local.ProviderPart(kind), syscall.SIGTERM))
		meanwhile()
		must(c.p.Provide(kind))
	}
	saved := filepath.Join(t.TempDir(), kind)
	restart(func() { must(exec.Command("cp", "-a", dir, saved).Run()) })
	return func() {
		restart(func() {
			must(os.RemoveAll(dir))
			must(exec.Command("cp", "-a", saved, dir).Run())
		})
	}
}

// enrol requests a certificate for a host, which proves its identity with its SSH host key.
func (c *cluster) enrol(t *testing.T, h *local.Host) error {
	t.Helper()
	i := slices.IndexFunc(h.Manifest.Needs, func(n document.Need) bool { return n.ID == "cert-node" })
	n := h.Manifest.Needs[i]
	id := h.Manifest.Identity.ID
	client := c.client(t, h, "cert")
	client.SVID = nil
	_, err := client.Enrol(t.Context(), hostapi.Request{Need: n.ID, Generation: n.Generation, Body: kit.JSON(hostapi.CertBody{ID: id, CSR: kit.CSR(id, kit.NewKey())})})
	return err
}

// refetch makes a host request a need again, as flor refetch does.
func (c *cluster) refetch(t *testing.T, h *local.Host, need string) {
	t.Helper()
	if err := os.MkdirAll(h.Refetch(), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(h.Refetch(), need), nil, 0o644); err != nil {
		t.Fatal(err)
	}
}

// crl checks that other software on host b refuses a revoked certificate and accepts b's own. The
// software uses the CRL that b keeps for it.
func (c *cluster) crl(t *testing.T, name string, revoked *tls.Certificate) {
	t.Helper()
	if _, err := exec.LookPath("openssl"); err != nil {
		t.Error("no openssl: install package openssl")
		return
	}
	verify := func(svid *tls.Certificate) string {
		dir := t.TempDir()
		for file, chain := range map[string][][]byte{"leaf.pem": svid.Certificate[:1], "issuing.pem": svid.Certificate[1:]} {
			var b []byte
			for _, der := range chain {
				b = append(b, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})...)
			}
			if err := os.WriteFile(filepath.Join(dir, file), b, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		out, _ := exec.CommandContext(t.Context(), "openssl", "verify", "-crl_check", "-CAfile", c.Path("operator", "ca.crt"),
			"-untrusted", filepath.Join(dir, "issuing.pem"), "-CRLfile", c.b.Layout().CRL(), filepath.Join(dir, "leaf.pem")).CombinedOutput()
		return string(out)
	}
	kit.Succeeds(t, "the CRL that b keeps", func() error {
		if out := verify(revoked); !strings.Contains(out, "certificate revoked") {
			return fmt.Errorf("openssl of %s, revoked: %s", name, out)
		}
		return nil
	})
	if out := verify(c.svid(t, c.b, "cert-node")); !strings.Contains(out, ": OK") {
		t.Errorf("openssl of b's own certificate: %s", out)
	}
}
