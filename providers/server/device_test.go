package server_test

import (
	"bytes"
	"encoding/base64"
	"net/http"
	"strings"
	"testing"

	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/providers/server"
	"github.com/florete/florete/tests/kit"
	"github.com/florete/florete/tests/kit/providertest"
)

// post sends a request of ursula with a device proof.
func post(c *providertest.Conn, r hostapi.Request, proof string) error {
	key, err := r.Key(ursula)
	if err != nil {
		return err
	}
	r.Device = proof
	req, err := http.NewRequest(http.MethodPost, "https://provider"+hostapi.Path("oidc"), bytes.NewReader(kit.JSON(r)))
	if err != nil {
		return err
	}
	req.Header.Set(hostapi.HeaderKey, key)
	return c.Send(req)
}

// TestDevice checks that an SVID alone obtains no secret. The SSH host key in the policy must also
// sign each connection, for this provider.
func TestDevice(t *testing.T) {
	k := new(echo)
	e, r := start(t, k)
	svid := e.Client(ursula).SVID
	refused := func(name string, err error) {
		t.Helper()
		t.Run(name, func(t *testing.T) { providertest.WantError(t, err, hostapi.CodeDeviceKey) })
	}

	thief := e.Connect(t, ursula, svid)
	refused("no proof, as the forwarder's account requests with the node's SVID", post(thief, r, ""))
	refused("what is no proof", post(thief, r, "x"))
	lawful := e.Connect(t, ursula, svid)
	refused("a proof of another connection", post(thief, r, lawful.Proof(nil)))
	for name, change := range map[string]func(*hostapi.DeviceStatement){
		"provider": func(s *hostapi.DeviceStatement) { s.Provider = kit.ProviderID("raishan", "cert") },
		"node":     func(s *hostapi.DeviceStatement) { s.Node = kit.ID("node/raishan") },
		"binding":  func(s *hostapi.DeviceStatement) { s.Binding = make([]byte, 32) },
	} {
		refused("a proof for another "+name, post(lawful, r, lawful.Proof(change)))
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

	if err := post(lawful, r, lawful.Proof(nil)); err != nil {
		t.Errorf("its own proof: %v", err)
	}
	if err := post(lawful, r, lawful.Proof(nil)); err != nil {
		t.Errorf("its own proof on the same connection: %v", err)
	}
	refused("a proof for another binding, after a good one", post(lawful, r, lawful.Proof(func(s *hostapi.DeviceStatement) { s.Binding = make([]byte, 32) })))

	proof := lawful.Proof(nil)
	if err := post(lawful, r, proof); err != nil {
		t.Errorf("its own proof after another: %v", err)
	}
	e.ReplaceHostKey(ursula)
	e.Publish(providertest.Serial + 1)
	kit.Eventually(t, "the proof to be refused", func() bool { return post(lawful, r, proof) != nil })
	refused("a proof that was good, once another machine has its place", post(lawful, r, proof))
}

// TestNoDevice checks that a node whose key is not in the policy is granted nothing, whatever else
// the policy contains.
func TestNoDevice(t *testing.T) {
	e, r := start(t, new(echo))
	e.Policy.Devices = e.Policy.Devices[1:]
	e.Publish(providertest.Serial)
	e.Restart()
	_, err := e.Client(ursula).Do(t.Context(), hostapi.Path("oidc"), r)
	providertest.WantError(t, err, hostapi.CodeNotGranted)
}

// TestGeneration checks that the policy sets the generation, and that a host with a newer
// generation waits.
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

// TestUnknownEndpoint checks that a request to an unknown endpoint has an audit row that names the
// caller.
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

// TestCheckpoint checks that only nodes of the policy can witness the audit log, with their SSH
// host keys, and that this leaves no audit rows.
func TestCheckpoint(t *testing.T) {
	t.Parallel()
	e := providertest.NewEnv(t, "ursula")
	e.Logged = true
	e.Start()
	kit.Succeeds(t, "a checkpoint", func() error { _, _, err := e.Log.Checkpoint(t.Context()); return err })
	get := func(c *hostapi.Client, from uint64) error {
		calls := c.Calls()
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
	c := e.Connect(t, ursula, e.Client(ursula).SVID)
	req, err := http.NewRequest(http.MethodGet, "https://provider"+hostapi.PathCheckpoint("cert")+"?from=x", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set(hostapi.HeaderDevice, base64.StdEncoding.EncodeToString([]byte(c.Proof(nil))))
	providertest.WantError(t, c.Send(req), hostapi.CodeMalformed)
}
