package server_test

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/providers/providertest"
	"github.com/florete/florete/providers/server"
	"github.com/florete/florete/tests/kit"
)

// conn is one connection on which a node's SVID sends requests as they are.
type conn struct {
	t  *testing.T
	e  *providertest.Env
	c  *tls.Conn
	in *bufio.Reader
}

func connect(t *testing.T, e *providertest.Env, svid *tls.Certificate) *conn {
	t.Helper()
	raw, err := e.Dial(t.Context(), "tcp", "")
	if err != nil {
		t.Fatal(err)
	}
	c := tls.Client(raw, &tls.Config{InsecureSkipVerify: true, Certificates: []tls.Certificate{*svid}})
	t.Cleanup(func() { c.Close() })
	if err := c.HandshakeContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	return &conn{t, e, c, bufio.NewReader(c)}
}

// proof is one by ursula's host key for this connection, of a statement that is changed
// before it is signed.
func (c *conn) proof(change func(*hostapi.DeviceStatement)) string {
	c.t.Helper()
	state := c.c.ConnectionState()
	binding, err := hostapi.ChannelBinding(&state)
	if err != nil {
		c.t.Fatal(err)
	}
	st := hostapi.DeviceStatement{Node: ursula, Provider: c.e.Provider().ID, Binding: binding}
	if change != nil {
		change(&st)
	}
	proof, err := st.Sign(c.e.HostKey(ursula))
	if err != nil {
		c.t.Fatal(err)
	}
	return proof
}

func (c *conn) post(r hostapi.Request, proof string) error {
	c.t.Helper()
	key, err := r.Key(ursula)
	if err != nil {
		c.t.Fatal(err)
	}
	r.Device = proof
	req, err := http.NewRequest(http.MethodPost, "https://provider"+hostapi.Path("oidc"), bytes.NewReader(kit.JSON(r)))
	if err != nil {
		c.t.Fatal(err)
	}
	req.Header.Set(hostapi.HeaderKey, key)
	return c.send(req)
}

// send returns what comes of a request: a refusal, nil when there is none.
func (c *conn) send(req *http.Request) error {
	c.t.Helper()
	if err := req.Write(c.c); err != nil {
		c.t.Fatal(err)
	}
	resp, err := http.ReadResponse(c.in, req)
	if err != nil {
		c.t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode == http.StatusOK {
		var a hostapi.Answer
		if err := json.NewDecoder(resp.Body).Decode(&a); err != nil {
			c.t.Fatal(err)
		}
		return nil
	}
	var refusal hostapi.Error
	if err := json.NewDecoder(resp.Body).Decode(&refusal); err != nil {
		c.t.Fatal(err)
	}
	return &refusal
}

// TestDevice: an SVID alone obtains no secret. The SSH host key that the policy has signs
// each connection anew, for that provider.
func TestDevice(t *testing.T) {
	k := new(echo)
	e, r := start(t, k)
	svid := e.Client(ursula).SVID
	refused := func(name string, err error) {
		t.Helper()
		t.Run(name, func(t *testing.T) { providertest.WantError(t, err, hostapi.CodeDeviceKey) })
	}

	thief := connect(t, e, svid)
	refused("no proof, as the forwarder's account requests with the node's SVID", thief.post(r, ""))
	refused("what is no proof", thief.post(r, "x"))
	lawful := connect(t, e, svid)
	refused("a proof of another connection", thief.post(r, lawful.proof(nil)))
	for name, change := range map[string]func(*hostapi.DeviceStatement){
		"provider": func(s *hostapi.DeviceStatement) { s.Provider = kit.ProviderID("raishan", "cert") },
		"node":     func(s *hostapi.DeviceStatement) { s.Node = kit.ID("node/raishan") },
		"binding":  func(s *hostapi.DeviceStatement) { s.Binding = make([]byte, 32) },
	} {
		refused("a proof for another "+name, lawful.post(r, lawful.proof(change)))
	}
	c := e.Client(ursula)
	c.HostKey = e.HostKey(kit.ID("node/raishan"))
	_, err := c.Do(t.Context(), hostapi.Path("oidc"), r)
	refused("a proof by another host's key", err)
	if !strings.Contains(err.Error(), "want one by its SSH host key SHA256:") {
		t.Error(err)
	}

	ahead := r
	ahead.Serial++
	_, err = c.Do(t.Context(), hostapi.Path("oidc"), ahead)
	providertest.WantError(t, err, hostapi.CodePolicyBehind)
	if n := k.calls.Load(); n != 0 {
		t.Fatalf("the kind was asked %d times", n)
	}
	for _, row := range e.Audit() {
		if row.Caller != ursula.String() || row.Code != hostapi.CodeDeviceKey.Name && row.Code != hostapi.CodePolicyBehind.Name {
			t.Errorf("audit: %+v", row)
		}
	}

	if err := lawful.post(r, lawful.proof(nil)); err != nil {
		t.Errorf("its own proof: %v", err)
	}
	if err := lawful.post(r, lawful.proof(nil)); err != nil {
		t.Errorf("its own proof on the same connection: %v", err)
	}
	refused("a proof for another binding, after a good one", lawful.post(r, lawful.proof(func(s *hostapi.DeviceStatement) { s.Binding = make([]byte, 32) })))

	proof := lawful.proof(nil)
	if err := lawful.post(r, proof); err != nil {
		t.Errorf("its own proof after another: %v", err)
	}
	e.ReplaceHostKey(ursula)
	e.Publish(providertest.Serial + 1)
	kit.Eventually(t, "the proof to be refused", func() bool { return lawful.post(r, proof) != nil })
	refused("a proof that was good, once another machine has its place", lawful.post(r, proof))
}

// TestNoDevice: a policy without a node's key grants the node nothing, whatever else is in it.
func TestNoDevice(t *testing.T) {
	e, r := start(t, new(echo))
	e.Policy.Devices = e.Policy.Devices[1:]
	e.Publish(providertest.Serial)
	e.Restart()
	_, err := e.Client(ursula).Do(t.Context(), hostapi.Path("oidc"), r)
	providertest.WantError(t, err, hostapi.CodeNotGranted)
}

// TestGeneration: the policy says it, and a host that is ahead of it waits.
func TestGeneration(t *testing.T) {
	e, r := start(t, new(echo))
	c := e.Client(ursula)
	do := func(serial int64, generation int) error {
		q := r
		q.Serial, q.Generation = serial, generation
		_, err := c.Do(t.Context(), hostapi.Path("oidc"), q)
		return err
	}
	const highest = 1<<63 - 1
	providertest.WantError(t, do(providertest.Serial, highest), hostapi.CodeMismatch)
	providertest.WantError(t, do(providertest.Serial, 0), hostapi.CodeRotated)
	providertest.WantError(t, do(providertest.Serial+1, 2), hostapi.CodePolicyBehind)
	if err := do(providertest.Serial, 1); err != nil {
		t.Fatal(err)
	}

	e.Rotate(ursula, r.Need, 2)
	e.Publish(providertest.Serial + 1)
	e.Restart()
	providertest.WantError(t, do(providertest.Serial, 1), hostapi.CodeRotated)
	if err := do(providertest.Serial, 2); err != nil {
		t.Errorf("rotated: %v", err)
	}
}

// TestUnknownEndpoint: it has an audit row, and says whose request it was.
func TestUnknownEndpoint(t *testing.T) {
	e, _ := start(t, new(echo))
	svid := e.Client(ursula).SVID
	_, err := e.Post(t, svid, "/tls/order%1b", "", nil)
	providertest.WantError(t, err, hostapi.CodeUnknownMethod)
	_, err = e.Post(t, nil, "/admin", "", nil)
	providertest.WantError(t, err, hostapi.CodeUnknownMethod)
	if status, err := e.Post(t, nil, "/health", "", nil); err != nil || status != 200 {
		t.Errorf("health: %d, %v", status, err)
	}
	rows := e.Audit()
	if len(rows) != 2 || rows[0].Caller != ursula.String() || rows[1].Caller != "" {
		t.Fatalf("audit: %+v", rows)
	}
	for _, row := range rows {
		if row.Outcome != server.Outcome(hostapi.Invalid) || row.Code != hostapi.CodeUnknownMethod.Name || row.From == "" || strings.Contains(row.Message, "\x1b") {
			t.Errorf("audit: %+v", row)
		}
	}
}

// TestCheckpoint: nodes of the policy alone witness the audit log, by their SSH host key, and
// leave no rows.
func TestCheckpoint(t *testing.T) {
	t.Parallel()
	e := providertest.NewEnv(t, "ursula")
	e.Logged = true
	e.Start()
	kit.Succeeds(t, "a checkpoint", func() error { _, _, err := e.Log.Checkpoint(t.Context()); return err })
	get := func(c *hostapi.Client, from uint64) error {
		calls := c.Pass()
		defer calls.Close()
		_, err := calls.Checkpoint(t.Context(), "cert", from)
		return err
	}
	for _, from := range []uint64{0, 1, 1 << 60} {
		if err := get(e.Client(ursula), from); err != nil {
			t.Errorf("from %d: %v", from, err)
		}
	}
	if rows := e.Audit(); len(rows) != 0 {
		t.Errorf("rows came of it: %+v", rows)
	}
	providertest.WantError(t, get(e.Client(kit.ID("node/other")), 0), hostapi.CodeNotGranted)
	copied := e.Client(ursula)
	copied.HostKey = kit.NewHostKey()
	providertest.WantError(t, get(copied, 0), hostapi.CodeDeviceKey)
	c := connect(t, e, e.Client(ursula).SVID)
	req, err := http.NewRequest(http.MethodGet, "https://provider"+hostapi.PathCheckpoint("cert")+"?from=x", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set(hostapi.HeaderDevice, base64.StdEncoding.EncodeToString([]byte(c.proof(nil))))
	providertest.WantError(t, c.send(req), hostapi.CodeMalformed)
}
