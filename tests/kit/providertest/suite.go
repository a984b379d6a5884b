package providertest

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"golang.org/x/crypto/ssh"

	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/providers/server"
	"github.com/florete/florete/tests/kit"
)

// Suite describes a kind of need to test.
type Suite struct {
	// Kind is the kind under test. Need is the name of the need that node ursula may request.
	Kind, Need string
	Request    any

	// Body returns the body that node ursula sends. If it is nil, the body is the granted request.
	Body func(t *testing.T) json.RawMessage

	// Settings contains the settings of the kind in the policy. Make makes the kind, unless the
	// kind is "cert".
	Settings any
	Make     func(e *Env) server.AnyKind

	// Secret lists the values of an answer that must not be readable in the stored state.
	Secret []string

	// Public reports whether the kind gives all callers the same answer in every generation.
	Public bool

	// Rotates is the name of the value that a host can request to have replaced. It is empty if
	// there is no such value.
	Rotates string
}

// Run runs tests that every kind of need must pass. A repeated request must have the same answer,
// also after a restart or if the first answer was lost. A request that the policy does not permit
// must be refused. Every decision must leave an audit row.
func Run(t *testing.T, s Suite) {
	if s.Body == nil {
		s.Body = func(*testing.T) json.RawMessage { return kit.JSON(s.Request) }
	}
	for name, test := range map[string]func(*testing.T, *fixture){
		"the same twice":              twice,
		"the same after a restart":    restart,
		"the same after a lost reply": lostReply,
		"a commit that failed":        failedCommit,
		"the same at once":            atOnce,
		"denied":                      denied,
		"key of another request":      otherKey,
		"another generation":          generation,
		"a rotation":                  rotation,
		"a poisoned generation":       poisoned,
		"a copied SVID":               copied,
		"secrets":                     secrets,
	} {
		t.Run(name, func(t *testing.T) { test(t, s.start(t)) })
	}
}

// fixture is a running provider with ursula's request to it.
type fixture struct {
	*Env
	Suite
	client  *hostapi.Client
	request hostapi.Request
}

func (s Suite) start(t *testing.T) *fixture {
	e := NewEnv(t, "ursula", "raishan")
	if s.Make != nil {
		e.Runs(s.Kind, s.Settings, s.Make)
	}
	e.Grant(kit.ID("node/ursula"), s.Need, s.Kind, s.Request)
	e.Start()
	return &fixture{
		Env: e, Suite: s, client: e.Client(kit.ID("node/ursula")),
		request: hostapi.Request{Need: s.Need, Serial: Serial, Generation: 1, Body: s.Body(t)},
	}
}

func (f *fixture) ask(t *testing.T) hostapi.Answer {
	t.Helper()
	a, err := f.client.Do(t.Context(), hostapi.Path(f.Kind), f.request)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// WantError checks that err is an *hostapi.Error with the given code.
func WantError(t *testing.T, err error, code hostapi.Code) {
	t.Helper()
	var e *hostapi.Error
	if !errors.As(err, &e) || e.Kind != code.Class || e.Code != code.Name {
		t.Fatalf("got %v, want %s (%s)", err, code.Class, code.Name)
	}
}

func same(t *testing.T, got, want hostapi.Answer) {
	t.Helper()
	if !maps.Equal(got.Values, want.Values) || got.Expires != want.Expires {
		t.Fatalf("got another answer the second time: %v, then %v", want, got)
	}
	if len(want.Values) == 0 {
		t.Fatal("the answer is empty")
	}
}

// rows checks that the audit log contains one row for each decision. A wanted row is "granted",
// "again" or a code.
func (f *fixture) rows(t *testing.T, want ...string) {
	t.Helper()
	var got []string
	for _, r := range f.Audit() {
		switch {
		case r.Replayed:
			got = append(got, "again")
		case r.Outcome == server.Granted:
			got = append(got, "granted")
		default:
			got = append(got, r.Code)
		}
		if r.Kind != f.Kind || r.Caller == "" || r.Key == "" || r.Time.IsZero() || r.From == "" || r.Need == "" || r.Serial == 0 {
			t.Errorf("a row that lacks something: %+v", r)
		}
	}
	if strings.Join(got, " ") != strings.Join(want, " ") {
		t.Errorf("audit: got %v, want %v", got, want)
	}
}

func twice(t *testing.T, f *fixture) {
	first := f.ask(t)
	same(t, f.ask(t), first)
	f.rows(t, "granted", "again")
}

func restart(t *testing.T, f *fixture) {
	first := f.ask(t)
	f.Restart()
	same(t, f.ask(t), first)
	f.rows(t, "granted", "again")
}

func lostReply(t *testing.T, f *fixture) {
	f.Store.Lose(errors.New("killed"))
	_, err := f.client.Do(t.Context(), hostapi.Path(f.Kind), f.request)
	WantError(t, err, hostapi.CodeInternal)
	f.rows(t, "granted")
	f.Restart()
	first := f.ask(t)
	same(t, f.ask(t), first)
	f.rows(t, "granted", "again", "again")
}

func failedCommit(t *testing.T, f *fixture) {
	f.Store.Fail(errors.New("disk full"))
	_, err := f.client.Do(t.Context(), hostapi.Path(f.Kind), f.request)
	WantError(t, err, hostapi.CodeInternal)
	if strings.Contains(err.Error(), "disk full") {
		t.Errorf("%v: tells the caller about our insides", err)
	}
	f.rows(t)
	same(t, f.ask(t), f.ask(t))
	f.rows(t, "granted", "again")
}

func atOnce(t *testing.T, f *fixture) {
	const n = 6
	answers, errs := make([]hostapi.Answer, n), make([]error, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { answers[i], errs[i] = f.client.Do(t.Context(), hostapi.Path(f.Kind), f.request) })
	}
	wg.Wait()
	for i := range n {
		if errs[i] != nil {
			t.Fatal(errs[i])
		}
		same(t, answers[i], answers[0])
	}
	f.rows(t, "granted", "again", "again", "again", "again", "again")
}

func denied(t *testing.T, f *fixture) {
	path := hostapi.Path(f.Kind)
	_, err := f.Client(kit.ID("node/raishan")).Do(t.Context(), path, f.request)
	WantError(t, err, hostapi.CodeNotGranted)

	r := f.request
	r.Need = "nothing-of-the-kind"
	_, err = f.client.Do(t.Context(), path, r)
	WantError(t, err, hostapi.CodeNotGranted)
	r.Serial = Serial + 1
	_, err = f.client.Do(t.Context(), path, r)
	WantError(t, err, hostapi.CodePolicyBehind)

	var fields map[string]json.RawMessage
	if err := json.Unmarshal(f.request.Body, &fields); err != nil {
		t.Fatal(err)
	}
	fields["more"] = kit.JSON("than granted")
	r = f.request
	r.Body = kit.JSON(fields)
	_, err = f.client.Do(t.Context(), path, r)
	WantError(t, err, hostapi.CodeMismatch)

	// A granted request is served even if the host is ahead.
	f.request.Serial = Serial + 1
	f.ask(t)
	f.rows(t, "not-granted", "not-granted", "policy-behind", "mismatch", "granted")
}

func otherKey(t *testing.T, f *fixture) {
	status, e := f.Post(t, f.client.SVID, hostapi.Path(f.Kind), strings.Repeat("0", 64), kit.JSON(f.request))
	WantError(t, e, hostapi.CodeKeyMismatch)
	if status != 400 {
		t.Errorf("status %d, want 400", status)
	}
	f.rows(t, "key-mismatch")
}

func generation(t *testing.T, f *fixture) {
	first, old := f.ask(t), f.request
	f.request.Generation = 2
	_, err := f.client.Do(t.Context(), hostapi.Path(f.Kind), f.request)
	WantError(t, err, hostapi.CodeMismatch)
	f.rotateTo(2)
	second := f.ask(t)
	if maps.Equal(first.Values, second.Values) != f.Public {
		t.Error("a higher generation has the answer of the lower one")
	}
	_, err = f.client.Do(t.Context(), hostapi.Path(f.Kind), old)
	WantError(t, err, hostapi.CodeRotated)
	same(t, f.ask(t), second)
	f.rows(t, "granted", "mismatch", "granted", "rotated", "again")
}

// rotateTo raises the generation in the grant of the need.
func (f *fixture) rotateTo(generation int) {
	f.Rotate(f.client.Node, f.Need, generation)
	f.Publish(Serial)
	f.Restart()
}

// rotation checks that a host can request another secret. One request makes one secret, even if it
// is sent repeatedly. A second rotation within ten minutes is refused, and so is a rotation that is
// not the next one.
func rotation(t *testing.T, f *fixture) {
	first, plain := f.ask(t), f.request
	rotate := func(number int) (hostapi.Answer, error) {
		r := plain
		r.Rotation = number
		return f.client.Do(t.Context(), hostapi.Path(f.Kind), r)
	}
	denied := func(number int) {
		t.Helper()
		_, err := rotate(number)
		WantError(t, err, hostapi.CodeRotation)
	}
	if f.Rotates == "" {
		denied(1)
		same(t, f.ask(t), first)
		f.rows(t, "granted", "rotation", "again")
		return
	}
	denied(-1)
	denied(2)
	second, err := rotate(1)
	if err != nil {
		t.Fatal(err)
	}
	if second.Values[f.Rotates] == first.Values[f.Rotates] || second.Values[hostapi.ValueRotation] != "1" {
		t.Error("the answer to a rotation has the secret of before, or not its number")
	}
	f.Restart()
	again, err := rotate(1)
	if err != nil {
		t.Fatal(err)
	}
	same(t, again, second)
	same(t, f.ask(t), second)
	_, err = rotate(2)
	WantError(t, err, hostapi.CodeBusy)
	same(t, f.ask(t), second)

	f.rotateTo(2)
	f.request.Generation = 2
	third := f.ask(t)
	if third.Values[f.Rotates] == second.Values[f.Rotates] || third.Values[hostapi.ValueRotation] != "1" {
		t.Error("a higher generation has the same secret, or forgets rotations")
	}
	f.rows(t, "granted", "rotation", "rotation", "granted", "again", "granted", "busy", "again", "granted")
	if rows := f.Audit(); rows[3].Detail["rotation"] != "1" {
		t.Errorf("the audit row of a rotation has %v", rows[3].Detail)
	}
}

// poisoned checks that a request cannot raise the generation. It also checks that a record with a
// higher generation does not prevent hosts from requesting the need. Former releases, which
// believed requests, wrote such records.
func poisoned(t *testing.T, f *fixture) {
	lawful, poison := f.request, f.request
	poison.Generation = math.MaxInt
	first := f.ask(t)
	_, err := f.client.Do(t.Context(), hostapi.Path(f.Kind), poison)
	WantError(t, err, hostapi.CodeMismatch)
	same(t, f.ask(t), first)

	f.rotateTo(math.MaxInt)
	f.request = poison
	f.ask(t)
	f.rotateTo(lawful.Generation)
	f.request = lawful
	again := f.ask(t)
	same(t, f.ask(t), again)
	f.rows(t, "granted", "mismatch", "again", "granted", "granted", "again")
}

// copied checks that a caller with an SVID, but without the SSH host key, obtains nothing.
func copied(t *testing.T, f *fixture) {
	for _, key := range []ssh.Signer{nil, kit.NewHostKey()} {
		thief := *f.client
		thief.HostKey = key
		_, err := thief.Do(t.Context(), hostapi.Path(f.Kind), f.request)
		WantError(t, err, hostapi.CodeDeviceKey)
	}
	f.ask(t)
	f.rows(t, "device-key", "device-key", "granted")
}

func secrets(t *testing.T, f *fixture) {
	answer := f.ask(t)
	f.Stop()
	files, err := filepath.Glob(filepath.Join(f.Dir, "state.db*"))
	if err != nil || len(files) == 0 {
		t.Fatal("no state", err)
	}
	for _, name := range files {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range f.Secret {
			if answer.Values[s] == "" {
				t.Fatalf("no value %q in the answer", s)
			}
			if bytes.Contains(b, []byte(answer.Values[s])) {
				t.Errorf("%s: value %q can be read in it", name, s)
			}
		}
		if filepath.Ext(name) == ".db" && !bytes.Contains(b, []byte(f.Need)) {
			t.Errorf("%s: not even the need can be read in it: this test sees nothing", name)
		}
	}
}
