package hostapi_test

import (
	"encoding/hex"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"

	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/internal/signers"
	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/internal/trust"
)

// joinVector is the content of the test vector join.json.
type joinVector struct {
	Provider   spiffe.ID             `json:"provider"`
	Binding    string                `json:"binding"`
	PrivateKey string                `json:"privateKey"` // of the device
	Token      string                `json:"token"`
	Request    hostapi.Join          `json:"request"`
	Statement  string                `json:"statement"`
	Key        string                `json:"key"` // of an operator
	Admission  trust.SignedAdmission `json:"admission"`
	ByToken    trust.SignedAdmission `json:"byToken"`
}

// TestJoinVector checks the signatures by a device, by a join token and by an operator against the
// vector join.json.
func TestJoinVector(t *testing.T) {
	var v joinVector
	vectors(t, "join.json", &v)
	binding, err := hex.DecodeString(v.Binding)
	if err != nil {
		t.Fatal(err)
	}
	if got := string(v.Request.Statement(v.Provider, binding)); got != v.Statement {
		t.Errorf("got %q, want %q", got, v.Statement)
	}
	token, err := hostapi.ParseJoinToken(v.Token)
	if err != nil || token.String() != v.Token || token.Public() != v.Request.Token || token.Provider != "drhorrible" {
		t.Errorf("got %+v, %v", token, err)
	}
	device, err := ssh.ParsePrivateKey([]byte(v.PrivateKey))
	if err != nil {
		t.Fatal(err)
	}
	key, err := v.Request.Verify(v.Provider, binding)
	if err != nil || ssh.FingerprintSHA256(key) != ssh.FingerprintSHA256(device.PublicKey()) {
		t.Errorf("got %v, %v", key, err)
	}
	for name, change := range map[string]func(*hostapi.Join){
		"node": func(j *hostapi.Join) { j.Node = v.Provider },
		"device": func(j *hostapi.Join) {
			j.Device = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIB9E5k5185SOn3P436lHIcTOjLtPJlxHkMcCstQc+/J1"
		},
		"device's comment": func(j *hostapi.Join) { j.Device += " root@elm" },
		"token":            func(j *hostapi.Join) { j.Token = v.Key },
		"no token":         func(j *hostapi.Join) { j.Token = "" },
		"token's word":     func(j *hostapi.Join) { j.TokenSign = v.Admission.Signature },
		"facts":            func(j *hostapi.Join) { j.Facts = []byte(`{}`) },
		"signature":        func(j *hostapi.Join) { j.Signature = "x" },
	} {
		other := v.Request
		change(&other)
		if _, err := other.Verify(v.Provider, binding); err == nil {
			t.Errorf("another %s is accepted", name)
		}
	}
	if _, err := v.Request.Verify(v.Provider, binding[1:]); err == nil {
		t.Error("another connection is accepted")
	}

	for name, s := range map[string]trust.SignedAdmission{"an operator's": v.Admission, "a token's": v.ByToken} {
		a, until, err := s.Verify("demo", v.Request.Node, signers.Any(v.Key))
		if err != nil || a.Key != v.Request.Device || until.IsZero() != (s.Grant == nil) {
			t.Errorf("%s: %+v, %s, %v", name, a, until, err)
		}
		for what, change := range map[string]func(*trust.SignedAdmission) (string, spiffe.ID, signers.Set){
			"cluster": func(*trust.SignedAdmission) (string, spiffe.ID, signers.Set) {
				return "other", v.Request.Node, signers.Any(v.Key)
			},
			"node": func(*trust.SignedAdmission) (string, spiffe.ID, signers.Set) {
				return "demo", v.Provider, signers.Any(v.Key)
			},
			"key": func(*trust.SignedAdmission) (string, spiffe.ID, signers.Set) {
				return "demo", v.Request.Node, signers.Any(v.Request.Token)
			},
			"signature": func(s *trust.SignedAdmission) (string, spiffe.ID, signers.Set) {
				s.Signature = v.Request.TokenSign
				return "demo", v.Request.Node, signers.Any(v.Key)
			},
			"text": func(s *trust.SignedAdmission) (string, spiffe.ID, signers.Set) {
				s.Admission = strings.Replace(s.Admission, "demo", "dem0", 1)
				return "demo", v.Request.Node, signers.Any(v.Key)
			},
		} {
			other := s
			if _, _, err := other.Verify(change(&other)); err == nil {
				t.Errorf("%s: another %s is accepted", name, what)
			}
		}
	}
	if _, _, err := (trust.SignedAdmission{Admission: v.ByToken.Admission, Signature: v.ByToken.Signature}).Verify("demo", v.Request.Node, signers.Any(v.Key)); err == nil {
		t.Error("a token admits without a grant")
	}
}

// FuzzJoinToken checks that ParseJoinToken(x).String() == x, and that errors contain no part of the
// token.
func FuzzJoinToken(f *testing.F) {
	token, err := hostapi.NewJoinToken("drhorrible")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(token.String())
	f.Add("florete-join-v1.p.AAAA")
	f.Fuzz(func(t *testing.T, text string) {
		parsed, err := hostapi.ParseJoinToken(text)
		if err == nil && parsed.String() != strings.TrimSpace(text) {
			t.Errorf("%q: got %q", text, parsed)
		}
		if _, secret, _ := strings.Cut(text, "."); err != nil && len(secret) > 20 && strings.Contains(err.Error(), secret) {
			t.Errorf("%q: %v", text, err)
		}
	})
}
