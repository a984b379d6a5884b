package hostapi_test

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/hiddeco/sshsig"
	"golang.org/x/crypto/ssh"

	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/internal/strictjson"
	"github.com/florete/florete/tests/kit"
)

// vectors reads a file of test vectors for the wire format. Other implementations must satisfy the
// same vectors.
func vectors(t testing.TB, name string, v any) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("../../tests/golden/wire/provider", name))
	if err != nil {
		t.Fatal(err)
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
}

func TestRequestVectors(t *testing.T) {
	var all []struct {
		Name, Wire, Canonical, Asked, Key string
		Caller                            spiffe.ID
	}
	vectors(t, "requests.json", &all)
	for _, v := range all {
		t.Run(v.Name, func(t *testing.T) {
			var r hostapi.Request
			if err := strictjson.Decode([]byte(v.Wire), &r); err != nil {
				t.Fatal(err)
			}
			if got, err := hostapi.Canonical(r.Body); err != nil || string(got) != v.Canonical {
				t.Errorf("canonical body: got %s, %v, want %s", got, err, v.Canonical)
			}
			if got, err := hostapi.Asked(r.Body); err != nil || string(got) != v.Asked {
				t.Errorf("asked for: got %s, %v, want %s", got, err, v.Asked)
			}
			if got, err := r.Key(v.Caller); err != nil || got != v.Key {
				t.Errorf("key: got %s, %v, want %s", got, err, v.Key)
			}
			again, err := json.Marshal(r)
			if err != nil {
				t.Fatal(err)
			}
			var q hostapi.Request
			if err := strictjson.Decode(again, &q); err != nil {
				t.Fatal(err)
			}
			if key, _ := q.Key(v.Caller); key != v.Key {
				t.Errorf("written and read again: key %s", key)
			}
		})
	}
}

func TestTagVectors(t *testing.T) {
	var all []struct {
		Name, Tag string
		Envelopes []string
	}
	vectors(t, "tags.json", &all)
	for _, v := range all {
		var a hostapi.Artifact
		for _, e := range v.Envelopes {
			a.Documents = append(a.Documents, hostapi.SignedDocument{Envelope: e, Body: "any", Signature: "any"})
		}
		if got := a.Tag(); got != v.Tag {
			t.Errorf("%s: got %s, want %s", v.Name, got, v.Tag)
		}
	}
	if len(all) == 0 {
		t.Error("no vectors")
	}
}

func TestErrorVectors(t *testing.T) {
	var all []struct {
		Wire   string
		Status int
		Error  hostapi.Error
	}
	vectors(t, "errors.json", &all)
	seen := map[string]bool{}
	for _, v := range all {
		var e hostapi.Error
		if err := strictjson.Decode([]byte(v.Wire), &e); err != nil {
			t.Fatalf("%s: %v", v.Wire, err)
		}
		if !reflect.DeepEqual(e, v.Error) || e.Status() != v.Status {
			t.Errorf("%s: got %+v, status %d, want %+v, %d", v.Wire, e, e.Status(), v.Error, v.Status)
		}
		if b, _ := json.Marshal(e); string(b) != v.Wire {
			t.Errorf("written: %s, want %s", b, v.Wire)
		}
		seen[e.Code] = true
	}
	if len(seen) != 21 {
		t.Errorf("%d codes, want all 21: %v", len(seen), seen)
	}
}

func TestProofVector(t *testing.T) {
	var v struct {
		Node, Provider                           spiffe.ID
		Nonce, CSR, Binding, HostKey, PrivateKey string
		Statement                                string
		Proof                                    hostapi.Proof
	}
	vectors(t, "proof.json", &v)
	csr, err := hex.DecodeString(v.CSR)
	if err != nil {
		t.Fatal(err)
	}
	binding, err := hex.DecodeString(v.Binding)
	if err != nil {
		t.Fatal(err)
	}
	st := hostapi.Statement{Node: v.Node, Provider: v.Provider, Nonce: v.Nonce, CSR: csr, Binding: binding}
	if string(st.Bytes()) != v.Statement {
		t.Errorf("got %q, want %q", st.Bytes(), v.Statement)
	}
	public, _, _, _, err := ssh.ParseAuthorizedKey([]byte(v.HostKey))
	if err != nil {
		t.Fatal(err)
	}
	if err := st.Verify(&v.Proof, public); err != nil {
		t.Error(err)
	}
	private, err := ssh.ParsePrivateKey([]byte(v.PrivateKey))
	if err != nil {
		t.Fatal(err)
	}
	// Ed25519 signatures are deterministic (RFC 8032), so this one must be equal byte for byte.
	proof, err := st.Sign(private)
	if err != nil || *proof != v.Proof {
		t.Errorf("got %+v, %v, want %+v", proof, err, v.Proof)
	}
	for name, change := range map[string]func(*hostapi.Statement){
		"node":     func(s *hostapi.Statement) { s.Node = s.Provider },
		"provider": func(s *hostapi.Statement) { s.Provider = s.Node },
		"nonce":    func(s *hostapi.Statement) { s.Nonce += "A" },
		"CSR":      func(s *hostapi.Statement) { s.CSR = nil },
		"binding":  func(s *hostapi.Statement) { s.Binding = nil },
	} {
		other := st
		change(&other)
		if err := other.Verify(&v.Proof, public); err == nil || !strings.HasPrefix(err.Error(), "enrolment proof: ") {
			t.Errorf("another %s: got %v", name, err)
		}
	}
	if err := st.Verify(&hostapi.Proof{Signature: "x"}, public); err == nil {
		t.Error("a signature that is none is taken")
	}
}

func TestDeviceVector(t *testing.T) {
	var v struct {
		Node, Provider                                 spiffe.ID
		Binding, HostKey, PrivateKey, Statement, Proof string
	}
	vectors(t, "device.json", &v)
	binding, err := hex.DecodeString(v.Binding)
	if err != nil {
		t.Fatal(err)
	}
	st := hostapi.DeviceStatement{Node: v.Node, Provider: v.Provider, Binding: binding}
	if string(st.Bytes()) != v.Statement {
		t.Errorf("got %q, want %q", st.Bytes(), v.Statement)
	}
	public, _, _, _, err := ssh.ParseAuthorizedKey([]byte(v.HostKey))
	if err != nil {
		t.Fatal(err)
	}
	if err := st.Verify(v.Proof, public); err != nil {
		t.Error(err)
	}
	private, err := ssh.ParsePrivateKey([]byte(v.PrivateKey))
	if err != nil {
		t.Fatal(err)
	}
	proof, err := st.Sign(private)
	if err != nil || proof != v.Proof {
		t.Errorf("got %s, %v, want %s", proof, err, v.Proof)
	}
	for name, change := range map[string]func(*hostapi.DeviceStatement){
		"node":     func(s *hostapi.DeviceStatement) { s.Node = s.Provider },
		"provider": func(s *hostapi.DeviceStatement) { s.Provider = s.Node },
		"binding":  func(s *hostapi.DeviceStatement) { s.Binding = nil },
	} {
		other := st
		change(&other)
		if err := other.Verify(v.Proof, public); err == nil || !strings.HasPrefix(err.Error(), "device proof: ") {
			t.Errorf("another %s: got %v", name, err)
		}
	}
	enrolment, err := sshsig.Sign(strings.NewReader(v.Statement), private, sshsig.HashSHA512, hostapi.ProofNamespace)
	if err != nil {
		t.Fatal(err)
	}
	for name, proof := range map[string]string{"nothing": "", "no signature": "x", "a signature for enrolment": string(sshsig.Armor(enrolment))} {
		if err := st.Verify(proof, public); err == nil || !strings.HasPrefix(err.Error(), "device proof: ") {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

// FuzzCanonical checks that Canonical(Canonical(x)) == Canonical(x), and that Asked removes the
// fields that a host adds to a request.
func FuzzCanonical(f *testing.F) {
	f.Add(`{"b":1,"a":["x",{"d":true,"c":"<&>\u2028"}]}`)
	f.Add(`{"csr":"x","id":"y"}`)
	f.Add(`{"publicKey":"x","id":"y"}`)
	f.Add(` [ 1 , -9223372036854775808 ] `)
	f.Add(`"\ud800"`)
	f.Fuzz(func(t *testing.T, s string) {
		once, err := hostapi.Canonical([]byte(s))
		if err != nil {
			return
		}
		twice, err := hostapi.Canonical(once)
		if err != nil || !bytes.Equal(once, twice) {
			t.Fatalf("%q: %q, then %q, %v", s, once, twice, err)
		}
		asked, err := hostapi.Asked([]byte(s))
		if err != nil {
			return
		}
		if again, err := hostapi.Asked(asked); err != nil || !bytes.Equal(asked, again) {
			t.Fatalf("%q: asks for %q, then %q, %v", s, asked, again, err)
		}
	})
}

// FuzzRequest checks that a request does not change if it is encoded and decoded again.
func FuzzRequest(f *testing.F) {
	f.Add([]byte(`{"need":"a","serial":1,"generation":1,"body":{"x":1}}`))
	f.Add([]byte(`{"need":"a","serial":1,"generation":1,"body":{},"proof":{"node":"spiffe://demo.flor/node/a","nonce":"n","signature":"s"}}`))
	caller := kit.ID("node/ursula")
	f.Fuzz(func(t *testing.T, b []byte) {
		var r, again hostapi.Request
		if strictjson.Decode(b, &r) != nil || r.Proof != nil && r.Proof.Node.IsZero() {
			return
		}
		key, err := r.Key(caller)
		if err != nil {
			return
		}
		written, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		if err := strictjson.Decode(written, &again); err != nil {
			t.Fatalf("%q written as %q: %v", b, written, err)
		}
		if k, err := again.Key(caller); err != nil || k != key {
			t.Fatalf("%q: key %s, then %s, %v", b, key, k, err)
		}
	})
}
