package cert_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/internal/strictjson"
	"github.com/florete/florete/tests/kit"
	"github.com/florete/florete/tests/kit/providertest"
)

func enrolment(t *testing.T) (*providertest.Env, hostapi.Request) {
	t.Helper()
	e := providertest.NewEnv(t, "ursula", "raishan")
	e.Start()
	return e, hostapi.Request{Need: "cert-node", Serial: providertest.Serial, Generation: 1, Body: body(ursula)}
}

// TestEnrol checks that a proof gives an SVID, that this SVID can request other grants, and that a
// host that lost the answer gets it again with a new proof.
func TestEnrol(t *testing.T) {
	e, r := enrolment(t)
	first, err := e.Stranger(ursula).Enrol(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	again, err := e.Stranger(ursula).Enrol(t.Context(), r)
	if err != nil || again.Values["svid"] != first.Values["svid"] {
		t.Fatalf("the same again: %v", err)
	}
	device, err := e.Store.Get(t.Context(), "cert/device/ursula")
	if err != nil || !strings.Contains(string(device.Value), kit.Authorized(e.HostKey(ursula).PublicKey())) {
		t.Errorf("device: %s, %v", device.Value, err)
	}
	rows := e.Audit()
	if len(rows) != 2 || !rows[0].Enrolment || rows[0].Caller != ursula.String() || !rows[1].Replayed {
		t.Errorf("audit: %+v", rows)
	}
	wiped := r
	wiped.Body = body(ursula)
	other, err := e.Stranger(ursula).Enrol(t.Context(), wiped)
	if err != nil || other.Values["svid"] == first.Values["svid"] {
		t.Fatalf("a wiped host: %v", err)
	}
}

func TestEnrolRefused(t *testing.T) {
	e, r := enrolment(t)
	t.Run("another host key", func(t *testing.T) {
		c := e.Stranger(ursula)
		c.HostKey = kit.NewHostKey()
		_, err := c.Enrol(t.Context(), r)
		providertest.WantError(t, err, hostapi.CodeUntrusted)
	})
	t.Run("another host key on a newer host", func(t *testing.T) {
		newer := r
		newer.Serial++
		c := e.Stranger(ursula)
		c.HostKey = kit.NewHostKey()
		_, err := c.Enrol(t.Context(), newer)
		providertest.WantError(t, err, hostapi.CodePolicyBehind)
	})
	t.Run("unknown node", func(t *testing.T) {
		unknown := kit.ID("node/unknown")
		q := r
		q.Body = body(unknown)
		_, err := e.Stranger(unknown).Enrol(t.Context(), q)
		providertest.WantError(t, err, hostapi.CodeNotGranted)
	})
	t.Run("the SVID of another", func(t *testing.T) {
		q := r
		q.Body = body(kit.ID("node/raishan"))
		_, err := e.Stranger(ursula).Enrol(t.Context(), q)
		providertest.WantError(t, err, hostapi.CodeUntrusted)
	})
	t.Run("a CSR that its key did not sign", func(t *testing.T) {
		block, _ := pem.Decode([]byte(kit.CSR(ursula, kit.NewKey())))
		block.Bytes[len(block.Bytes)-1] ^= 1
		q := r
		q.Body = kit.JSON(hostapi.CertBody{ID: ursula, CSR: string(pem.EncodeToMemory(block))})
		_, err := e.Stranger(ursula).Enrol(t.Context(), q)
		providertest.WantError(t, err, hostapi.CodeMalformed)
	})
	t.Run("no proof", func(t *testing.T) {
		_, err := e.Post(t, nil, hostapi.Path("cert"), "", kit.JSON(r))
		providertest.WantError(t, err, hostapi.CodeUntrusted)
	})
	t.Run("a proof beside a certificate", func(t *testing.T) {
		q := r
		q.Proof = &hostapi.Proof{Node: ursula}
		_, err := e.Post(t, e.Client(ursula).SVID, hostapi.Path("cert"), "", kit.JSON(q))
		providertest.WantError(t, err, hostapi.CodeMalformed)
	})
	t.Run("a proof of nobody", func(t *testing.T) {
		body := strings.Replace(string(kit.JSON(r)), `"need"`, `"proof":{},"need"`, 1)
		_, err := e.Post(t, nil, hostapi.Path("cert"), "", []byte(body))
		providertest.WantError(t, err, hostapi.CodeMalformed)
	})
	if _, err := e.Store.Get(t.Context(), "cert/device/ursula"); err == nil {
		t.Error("a refused enrolment left a device")
	}
}

// wire is a TLS connection on which a test can send anything.
type wire struct {
	t    *testing.T
	e    *providertest.Env
	conn *tls.Conn
	in   *bufio.Reader
}

func dial(t *testing.T, e *providertest.Env) *wire {
	t.Helper()
	raw, err := e.Dial(t.Context(), "tcp", "")
	if err != nil {
		t.Fatal(err)
	}
	conn := tls.Client(raw, &tls.Config{InsecureSkipVerify: true})
	t.Cleanup(func() { conn.Close() })
	if err := conn.HandshakeContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	return &wire{t, e, conn, bufio.NewReader(conn)}
}

func (w *wire) post(path, key string, v, answer any) error {
	w.t.Helper()
	req, err := http.NewRequest(http.MethodPost, "https://provider"+path, bytes.NewReader(kit.JSON(v)))
	if err != nil {
		w.t.Fatal(err)
	}
	req.Header.Set(hostapi.HeaderKey, key)
	if err := req.Write(w.conn); err != nil {
		w.t.Fatal(err)
	}
	resp, err := http.ReadResponse(w.in, req)
	if err != nil {
		w.t.Fatal(err)
	}
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	if resp.StatusCode != http.StatusOK {
		var e hostapi.Error
		if err := strictjson.Decode(b, &e); err != nil {
			w.t.Fatalf("%q: %v", b, err)
		}
		return &e
	}
	if err := strictjson.Decode(b, answer); err != nil {
		w.t.Fatal(err)
	}
	return nil
}

func (w *wire) nonce() string {
	w.t.Helper()
	var n hostapi.Nonce
	if err := w.post(hostapi.PathNonce, "", struct{}{}, &n); err != nil {
		w.t.Fatal(err)
	}
	return n.Nonce
}

// prove adds a proof to r, changed before it is signed.
func (w *wire) prove(r hostapi.Request, hostKey ssh.Signer, nonce string, change func(*hostapi.Statement)) hostapi.Request {
	w.t.Helper()
	cs := w.conn.ConnectionState()
	binding, err := hostapi.ChannelBinding(&cs)
	if err != nil {
		w.t.Fatal(err)
	}
	var b hostapi.CertBody
	if err := json.Unmarshal(r.Body, &b); err != nil {
		w.t.Fatal(err)
	}
	block, _ := pem.Decode([]byte(b.CSR))
	st := hostapi.Statement{Node: ursula, Provider: w.e.Provider().ID, Nonce: nonce, CSR: block.Bytes, Binding: binding}
	change(&st)
	if r.Proof, err = st.Sign(hostKey); err != nil {
		w.t.Fatal(err)
	}
	return r
}

func (w *wire) enrol(r hostapi.Request) error {
	w.t.Helper()
	key, err := r.Key(ursula)
	if err != nil {
		w.t.Fatal(err)
	}
	return w.post(hostapi.Path("cert"), key, r, &hostapi.Answer{})
}

// TestReplay checks that a proof can be used once, only on its own connection, and only for its own
// statement.
func TestReplay(t *testing.T) {
	e, r := enrolment(t)
	key := e.HostKey(ursula)
	asIs := func(*hostapi.Statement) {}

	w := dial(t, e)
	proven := w.prove(r, key, w.nonce(), asIs)
	if err := w.enrol(proven); err != nil {
		t.Fatal(err)
	}
	providertest.WantError(t, w.enrol(proven), hostapi.CodeReplayed)
	again := w.prove(r, key, proven.Proof.Nonce, asIs)
	again.Serial++ // a replay must be refused for another reason than an old policy
	providertest.WantError(t, w.enrol(again), hostapi.CodeReplayed)

	elsewhere := dial(t, e)
	stolen := w.prove(r, key, w.nonce(), asIs)
	providertest.WantError(t, elsewhere.enrol(stolen), hostapi.CodeUntrusted)
	e.Restart()
	after := dial(t, e)
	providertest.WantError(t, after.enrol(after.prove(r, key, proven.Proof.Nonce, asIs)), hostapi.CodeReplayed)

	for name, change := range map[string]func(*hostapi.Statement){
		"provider": func(s *hostapi.Statement) { s.Provider = kit.ProviderID("raishan", "cert") },
		"CSR":      func(s *hostapi.Statement) { s.CSR = []byte("another") },
		"binding":  func(s *hostapi.Statement) { s.Binding = make([]byte, 32) },
	} {
		t.Run("another "+name, func(t *testing.T) {
			w := dial(t, e)
			providertest.WantError(t, w.enrol(w.prove(r, key, w.nonce(), change)), hostapi.CodeUntrusted)
		})
	}
	t.Run("another nonce", func(t *testing.T) {
		w := dial(t, e)
		providertest.WantError(t, w.enrol(w.prove(r, key, "AAAA", asIs)), hostapi.CodeBadNonce)
	})
}

// device returns the device proof of a connection, made with a host key.
func (w *wire) device(hostKey ssh.Signer) string {
	w.t.Helper()
	cs := w.conn.ConnectionState()
	binding, err := hostapi.ChannelBinding(&cs)
	if err != nil {
		w.t.Fatal(err)
	}
	proof, err := (hostapi.DeviceStatement{Node: ursula, Provider: w.e.Provider().ID, Binding: binding}).Sign(hostKey)
	if err != nil {
		w.t.Fatal(err)
	}
	return proof
}

// TestConnectionThatEnrolled checks that a host that enrolled on a connection is known there, and
// only there, by the certificate that it received. Everything else is the same as with a presented
// certificate.
func TestConnectionThatEnrolled(t *testing.T) {
	e, r := enrolment(t)
	key := e.HostKey(ursula)
	next := hostapi.Request{Need: "cert-node", Serial: providertest.Serial, Generation: 1, Body: body(ursula)}
	request := func(w *wire, proof string) error {
		q := next
		q.Device = proof
		id, err := q.Key(ursula)
		if err != nil {
			t.Fatal(err)
		}
		return w.post(hostapi.Path("cert"), id, q, &hostapi.Answer{})
	}
	w := dial(t, e)
	providertest.WantError(t, request(w, w.device(key)), hostapi.CodeUntrusted)
	refused := w.prove(r, kit.NewHostKey(), w.nonce(), func(*hostapi.Statement) {})
	providertest.WantError(t, w.enrol(refused), hostapi.CodeUntrusted)
	providertest.WantError(t, request(w, w.device(key)), hostapi.CodeUntrusted)
	if err := w.enrol(w.prove(r, key, w.nonce(), func(*hostapi.Statement) {})); err != nil {
		t.Fatal(err)
	}
	other := dial(t, e)
	providertest.WantError(t, request(other, other.device(key)), hostapi.CodeUntrusted)
	providertest.WantError(t, request(w, ""), hostapi.CodeDeviceKey)
	providertest.WantError(t, request(w, w.device(kit.NewHostKey())), hostapi.CodeDeviceKey)
	providertest.WantError(t, request(w, other.device(key)), hostapi.CodeDeviceKey)
	if err := request(w, w.device(key)); err != nil {
		t.Errorf("the host that enrolled: %v", err)
	}
	e.ReplaceHostKey(ursula) // from now on, another machine is the node
	e.Publish(providertest.Serial + 1)
	kit.Succeeds(t, "the former machine to be refused", func() error {
		err := request(w, w.device(key))
		if err != nil && hostapi.AsError(err).Code == hostapi.CodeDeviceKey.Name {
			return nil
		}
		return fmt.Errorf("%v, want %s", err, hostapi.CodeDeviceKey.Name)
	})
}

// TestEnrolThenRequest checks that a client continues on the connection on which it enrolled, and
// opens another one if the provider refuses it there.
func TestEnrolThenRequest(t *testing.T) {
	e, r := enrolment(t)
	dials := 0
	c := e.Stranger(ursula)
	c.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
		dials++
		return e.Dial(ctx, network, address)
	}
	for _, cut := range []bool{false, true} {
		dials = 0
		p := c.Calls()
		if _, err := p.Enrol(t.Context(), r); err != nil {
			t.Fatal(err)
		}
		if err := p.Enrolled(e.Issue(ursula, time.Hour)); err != nil {
			t.Fatal(err)
		}
		want := 1
		if cut {
			e.Restart()
			want = 2
		}
		q := hostapi.Request{Need: "cert-node", Serial: providertest.Serial, Generation: 1, Body: body(ursula)}
		if _, err := p.Do(t.Context(), hostapi.Path("cert"), q); err != nil || dials != want {
			t.Errorf("cut %t: %v over %d connections, want %d", cut, err, dials, want)
		}
		p.Close()
	}
}

// slow is a connection on a busy machine: a write returns long after its bytes have arrived and may
// have been answered.
type slow struct{ net.Conn }

func (s slow) Write(b []byte) (int, error) {
	n, err := s.Conn.Write(b)
	time.Sleep(100 * time.Millisecond)
	return n, err
}

// TestEnrolOnABusyMachine checks that both requests use one connection, however slow it is.
func TestEnrolOnABusyMachine(t *testing.T) {
	e, r := enrolment(t)
	c := e.Stranger(ursula)
	c.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := e.Dial(ctx, network, address)
		return slow{conn}, err
	}
	if _, err := c.Enrol(t.Context(), r); err != nil {
		t.Fatal(err)
	}
}

// TestLostEnrolment checks that if the answer is lost after the commit, the nonce is used up, and a
// new proof gets the same answer.
func TestLostEnrolment(t *testing.T) {
	e, r := enrolment(t)
	w := dial(t, e)
	proven := w.prove(r, e.HostKey(ursula), w.nonce(), func(*hostapi.Statement) {})
	e.Store.Lose(errors.New("killed"))
	providertest.WantError(t, w.enrol(proven), hostapi.CodeInternal)
	providertest.WantError(t, w.enrol(proven), hostapi.CodeReplayed)
	if _, err := e.Stranger(ursula).Enrol(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	if rows := e.Audit(); len(rows) != 3 || rows[0].Replayed || rows[1].Code != hostapi.CodeReplayed.Name || !rows[2].Replayed {
		t.Errorf("audit: %+v", rows)
	}
}

// TestNonceOnce checks that if two proofs with the same nonce are decided at the same time, only
// one of them enrols.
func TestNonceOnce(t *testing.T) {
	e := providertest.NewEnv(t, "ursula")
	e.Grant(ursula, "cert-again", "cert", map[string]any{"id": ursula})
	e.Start()
	// The requests are for two needs, so that both transactions share only the nonce.
	r := hostapi.Request{Need: "cert-node", Serial: providertest.Serial, Generation: 1, Body: body(ursula)}
	other := hostapi.Request{Need: "cert-again", Serial: providertest.Serial, Generation: 1, Body: body(ursula)}
	asIs := func(*hostapi.Statement) {}
	first, second := dial(t, e), dial(t, e)
	nonce := first.nonce()
	e.Store.Meanwhile(func() {
		if err := second.enrol(second.prove(other, e.HostKey(ursula), nonce, asIs)); err != nil {
			t.Error(err)
		}
	})
	err := first.enrol(first.prove(r, e.HostKey(ursula), nonce, asIs))
	providertest.WantError(t, err, hostapi.CodeReplayed)
	if rows := e.Audit(); len(rows) != 2 || rows[0].Code != "" || rows[1].Code != hostapi.CodeReplayed.Name {
		t.Errorf("audit: %+v", rows)
	}
}
