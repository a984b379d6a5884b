package server_test

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/providers/ca"
	"github.com/florete/florete/providers/cert"
	"github.com/florete/florete/providers/sealedstore"
	"github.com/florete/florete/providers/server"
	"github.com/florete/florete/providers/store"
	"github.com/florete/florete/tests/kit"
	"github.com/florete/florete/tests/kit/providertest"
)

var ursula = kit.ID("node/ursula")

// echo is a kind whose answer contains the request and the number of requests so far.
type echo struct {
	calls atomic.Int64
	hold  chan struct{} // if not nil, answers wait for it
	fails []error       // errors of the first calls; later calls succeed
}

func (*echo) Name() string { return "oidc" }

func (*echo) Compile(p document.Policy) (any, error) {
	if strings.Contains(string(p.Kinds["oidc"]), "bad") {
		return nil, errors.New("bad settings")
	}
	return nil, nil
}

func (k *echo) Answer(ctx context.Context, _ any, c server.Call) (server.Decision, error) {
	n := k.calls.Add(1)
	if k.hold != nil {
		<-k.hold
	}
	var d server.Decision
	d.Answer.Values = map[string]string{"asked": string(c.Request.Body), "n": string(rune('0' + n)), "generation": fmt.Sprint(c.Request.Generation)}
	if int(n) <= len(k.fails) {
		return d, k.fails[n-1]
	}
	return d, nil
}

func start(t *testing.T, k *echo) (*providertest.Env, hostapi.Request) {
	t.Helper()
	e := providertest.NewEnv(t, "ursula", "raishan")
	e.Runs("oidc", struct{}{}, func(*providertest.Env) server.AnyKind { return server.Any(k) })
	e.Grant(ursula, "echo", "oidc", map[string]any{"word": "hello"})
	e.Start()
	return e, hostapi.Request{Need: "echo", Serial: providertest.Serial, Generation: 1, Body: json.RawMessage(`{"word":"hello"}`)}
}

func TestConformance(t *testing.T) {
	providertest.Run(t, providertest.Suite{
		Kind: "oidc", Need: "echo", Request: map[string]any{"word": "hello", "n": 1, "list": []string{"b", "a"}}, Settings: struct{}{},
		Body: func(*testing.T) json.RawMessage {
			return json.RawMessage(`{ "n":1, "list":["b","a"],"word":"hel\u006co" }`)
		},
		Make:   func(*providertest.Env) server.AnyKind { return server.Any(new(echo)) },
		Secret: []string{"asked"},
	})
}

// TestCallers checks callers without a certificate, strangers, callers with an expired certificate,
// and callers that are no node.
func TestCallers(t *testing.T) {
	e, r := start(t, new(echo))
	stranger := kit.NewCA()
	ask := func(t *testing.T, svid *tls.Certificate) error {
		c := e.Stranger(ursula)
		c.SVID = svid
		_, err := c.Do(t.Context(), hostapi.Path("oidc"), r)
		return err
	}
	t.Run("nobody", func(t *testing.T) {
		_, err := e.Post(t, nil, hostapi.Path("oidc"), "", kit.JSON(r))
		providertest.WantError(t, err, hostapi.CodeUntrusted)
	})
	t.Run("stranger CA, same ID", func(t *testing.T) {
		providertest.WantError(t, ask(t, stranger.Issue(ursula, time.Hour)), hostapi.CodeUntrusted)
	})
	t.Run("a service", func(t *testing.T) {
		err := ask(t, e.Issue(kit.ID("service/outline"), time.Hour))
		providertest.WantError(t, err, hostapi.CodeUntrusted)
		if !strings.Contains(err.Error(), "only nodes call providers") {
			t.Error(err)
		}
	})
	t.Run("expired", func(t *testing.T) {
		providertest.WantError(t, ask(t, e.Issue(ursula, -time.Second)), hostapi.CodeClock)
	})
	t.Run("expired and of a stranger CA", func(t *testing.T) {
		providertest.WantError(t, ask(t, stranger.Issue(ursula, -time.Second)), hostapi.CodeUntrusted)
	})
	for _, row := range e.Audit() {
		if row.Outcome == server.Granted || row.Message == "" {
			t.Errorf("audit: %+v", row)
		}
	}
	if n := len(e.Audit()); n != 5 {
		t.Errorf("%d audit rows, want 5", n)
	}
}

func TestMalformed(t *testing.T) {
	e, r := start(t, new(echo))
	svid := e.Client(ursula).SVID
	good := string(kit.JSON(r))
	for name, body := range map[string]string{
		"empty":         "",
		"not JSON":      "hello",
		"two values":    good + good,
		"unknown field": strings.Replace(good, `"need"`, `"`+strings.Repeat("more", 1000)+`":1,"need"`, 1),
		"field twice":   strings.Replace(good, `"need"`, `"need":"x","need"`, 1),
		"too long":      good + strings.Repeat(" ", hostapi.MaxRequest),
		"body absent":   `{"need":"echo","serial":1000,"generation":1}`,
		"a long need":   strings.Replace(good, "echo", strings.Repeat("x", 64), 1),
		"escapes":       strings.Replace(good, `{"word":"hello"}`, `{"\u001b[2J":null}`, 1),
	} {
		t.Run(name, func(t *testing.T) {
			status, err := e.Post(t, svid, hostapi.Path("oidc"), "", []byte(body))
			providertest.WantError(t, err, hostapi.CodeMalformed)
			if status != http.StatusBadRequest {
				t.Errorf("status %d", status)
			}
		})
	}
	list := r
	list.Body = json.RawMessage(`[]`)
	_, err := e.Client(ursula).Do(t.Context(), hostapi.Path("oidc"), list)
	providertest.WantError(t, err, hostapi.CodeMalformed)
	escapes := r
	escapes.Need = "\x1b[2J"
	_, err = e.Client(ursula).Do(t.Context(), hostapi.Path("oidc"), escapes)
	providertest.WantError(t, err, hostapi.CodeNotGranted)
	for _, row := range e.Audit() {
		if len(row.Message) > 510 || len(row.Need) > 63 || strings.Contains(row.Message+row.Need, "\x1b") {
			t.Errorf("a caller wrote much, or what steers a terminal, into the audit log: %+v", row)
		}
	}
	t.Run("no such endpoint", func(t *testing.T) {
		_, err := e.Post(t, svid, "/tls/order", "", nil)
		providertest.WantError(t, err, hostapi.CodeUnknownMethod)
	})
}

func TestBusy(t *testing.T) {
	k := &echo{hold: make(chan struct{})}
	e, r := start(t, k)
	raishan := kit.ID("node/raishan")
	const share = 16
	for i := range share { // only one request for a need is decided at a time
		for _, node := range []spiffe.ID{ursula, raishan} {
			e.Grant(node, fmt.Sprintf("echo-%d", i), "oidc", map[string]any{"word": "hello"})
		}
	}
	e.Publish(providertest.Serial)
	e.Restart()
	results := make(chan error)
	ask := func(node spiffe.ID) {
		c, q := e.Client(node), r
		go func() {
			_, err := c.Do(t.Context(), hostapi.Path("oidc"), q)
			results <- err
		}()
	}
	fill := func(node spiffe.ID) {
		until := k.calls.Load() + share
		for i := range share {
			r.Need = fmt.Sprintf("echo-%d", i)
			ask(node)
		}
		kit.Eventually(t, "the slots to be full", func() bool { return k.calls.Load() >= until })
	}
	wantBusy := func(node spiffe.ID, says string, after int) {
		t.Helper()
		ask(node)
		err := <-results
		providertest.WantError(t, err, hostapi.CodeBusy)
		if e := hostapi.AsError(err); e.RetryAfter != after || !strings.Contains(e.Message, says) {
			t.Errorf("%v, Retry-After %d, want …%s… and %d", err, e.RetryAfter, says, after)
		}
	}
	fill(ursula)
	wantBusy(ursula, "16 requests of yours", 1)
	fill(raishan) // takes the other half of the slots
	r.Need = "cert-node"
	wantBusy(kit.ID("node/outline"), "32 requests are", 15)
	close(k.hold)
	for range 2 * share {
		<-results
	}
}

// TestStoreAway checks that a store that does not answer causes a transient error, which tells the
// host when to try again.
func TestStoreAway(t *testing.T) {
	e, r := start(t, &echo{})
	e.Store.Fail(fmt.Errorf("etcd at 10.0.0.1: %w", store.ErrUnavailable))
	_, err := e.Client(ursula).Do(t.Context(), hostapi.Path("oidc"), r)
	providertest.WantError(t, err, hostapi.CodeStore)
	var refusal *hostapi.Error
	if !errors.As(err, &refusal) || refusal.RetryAfter == 0 || strings.Contains(err.Error(), "10.0.0.1") {
		t.Errorf("got %v, want when to request again, and nothing of our insides", err)
	}
	if _, err = e.Client(ursula).Do(t.Context(), hostapi.Path("oidc"), r); err != nil {
		t.Error(err)
	}
}

// TestAccident checks that an unexpected error of a kind is transient for the caller, and that only
// the log contains its text.
func TestAccident(t *testing.T) {
	k := &echo{fails: []error{errors.New("the password is swordfish"), hostapi.Errorf(hostapi.CodeMismatch, "not that")}}
	e, r := start(t, k)
	_, err := e.Client(ursula).Do(t.Context(), hostapi.Path("oidc"), r)
	providertest.WantError(t, err, hostapi.CodeInternal)
	if strings.Contains(err.Error(), "swordfish") {
		t.Error(err)
	}
	_, err = e.Client(ursula).Do(t.Context(), hostapi.Path("oidc"), r)
	providertest.WantError(t, err, hostapi.CodeMismatch)
	if _, err = e.Client(ursula).Do(t.Context(), hostapi.Path("oidc"), r); err != nil {
		t.Error(err)
	}
}

func issuer(t *testing.T, e *providertest.Env) *cert.Issuer {
	t.Helper()
	key, err := sealedstore.New(make([]byte, 32))
	if err != nil {
		t.Fatal(err)
	}
	return cert.New(cert.Config{Key: key, Authority: func() (*ca.Authority, error) { return e.Issuing, nil }})
}

// TestNoResumption checks that every connection presents certificates. A resumed connection would
// keep using certificates that were valid when the session began.
func TestNoResumption(t *testing.T) {
	e := providertest.NewEnv(t, "ursula")
	e.Start()
	config := &tls.Config{InsecureSkipVerify: true, ClientSessionCache: tls.NewLRUClientSessionCache(8), ServerName: "provider"}
	for range 3 {
		raw, err := e.Dial(t.Context(), "tcp", "")
		if err != nil {
			t.Fatal(err)
		}
		conn := tls.Client(raw, config)
		// TLS sends session tickets with the first answer.
		fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: provider\r\nConnection: close\r\nContent-Length: 0\r\n\r\n", hostapi.PathNonce)
		if b, err := io.ReadAll(conn); err != nil || !strings.Contains(string(b), `{"nonce":`) {
			t.Fatalf("got %q, %v", b, err)
		}
		if cs := conn.ConnectionState(); cs.DidResume || cs.Version != tls.VersionTLS13 {
			t.Errorf("resumed %v, version %x", cs.DidResume, cs.Version)
		}
		conn.Close()
	}
	raw, err := e.Dial(t.Context(), "tcp", "")
	if err != nil {
		t.Fatal(err)
	}
	defer raw.Close()
	if err := tls.Client(raw, &tls.Config{InsecureSkipVerify: true, MaxVersion: tls.VersionTLS12}).HandshakeContext(t.Context()); err == nil {
		t.Error("TLS 1.2 is spoken")
	}
}
