package cert_test

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/providers/server"
	"github.com/florete/florete/tests/kit"
	"github.com/florete/florete/tests/kit/providertest"
)

// alarms returns the audit rows about two machines.
func alarms(e *providertest.Env) (rows []server.Row) {
	for _, r := range e.Rows() {
		if r.Outcome == server.Alarmed {
			rows = append(rows, r)
		}
	}
	return rows
}

// TestTwoMachines checks that a copy of a machine with its SSH host key is reported at the first
// renewal that does not continue the line, and that both machines are served.
func TestTwoMachines(t *testing.T) {
	var log lines
	e := providertest.NewEnv(t, "ursula")
	e.Logger = slog.New(slog.NewTextHandler(&log, nil))
	e.Start()
	original := e.Stranger(ursula)
	enrol(t, original)
	if err := renew(t, original); err != nil {
		t.Fatal(err)
	}
	copied := *original
	for _, step := range []struct {
		what   string
		who    *hostapi.Client
		alarms int
	}{
		{"the original goes on", original, 0},
		{"the copy has what the answer to that could have been lost", &copied, 0},
		{"the original is now another line", original, 1},
		{"and so is the copy", &copied, 2},
		{"which goes on alone", &copied, 2},
		{"until the original comes again", original, 3},
	} {
		if err := renew(t, step.who); err != nil {
			t.Fatalf("%s: %v", step.what, err)
		}
		if n := len(alarms(e)); n != step.alarms {
			t.Fatalf("%s: %d alarms, want %d: %+v", step.what, n, step.alarms, alarms(e))
		}
	}
	row := alarms(e)[0]
	if row.Code != "two-machines" || row.Caller != ursula.String() || row.From == "" || row.Serial != providertest.Serial || row.Detail["presented"] == "" ||
		!strings.Contains(row.Message, "two machines hold its SSH host key, or it was restored from a copy") {
		t.Errorf("%+v", row)
	}
	if said := log.String(); strings.Count(said, "level=ERROR msg=alarm") != 3 {
		t.Errorf("logged:\n%s", said)
	}

	// A machine that has only the SSH host key enrols with it.
	enrol(t, e.Stranger(ursula))
	if err := renew(t, original); err != nil || len(alarms(e)) != 4 {
		t.Errorf("after the other enrolled: %v, %d alarms, want 4", err, len(alarms(e)))
	}
}

// TestOneMachine checks that ordinary events of one machine and its providers raise no alarm.
func TestOneMachine(t *testing.T) {
	e := providertest.NewEnv(t, "ursula")
	second := e.Beside("horrible")
	e.Start()
	second.Start()
	c := e.Stranger(ursula)
	enrol(t, c)
	must := func(c *hostapi.Client, what string) {
		t.Helper()
		if err := renew(t, c); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		for _, e := range []*providertest.Env{e, second} {
			if rows := alarms(e); len(rows) != 0 {
				t.Fatalf("%s: %+v", what, rows)
			}
		}
	}
	lost := func(e *providertest.Env, c *hostapi.Client) {
		t.Helper()
		e.Store.Lose(errors.New("killed"))
		providertest.WantError(t, renew(t, c), hostapi.CodeInternal)
		e.Restart()
	}
	for range 3 {
		must(c, "renewal")
	}
	lost(e, c)
	lost(e, c)
	must(c, "after two lost answers")

	r := hostapi.Request{Need: "cert-node", Serial: providertest.Serial, Generation: 1, Body: body(ursula)}
	for range 3 {
		if _, err := c.Do(t.Context(), hostapi.Path("cert"), r); err != nil {
			t.Fatal(err)
		}
	}
	must(c, "after the same request three times")

	there := *c
	there.Provider, there.Dial = second.Provider(), second.Dial
	for range 3 {
		must(&there, "at the other provider")
		c.SVID = there.SVID
		lost(e, c)
		must(c, "and back")
		there.SVID = c.SVID
		lost(second, &there)
	}

	// The provider's state is restored from a backup, and the node had renewed since the backup.
	state := filepath.Join(e.Dir, "state.db")
	e.Stop()
	saved, err := os.ReadFile(state)
	if err != nil {
		t.Fatal(err)
	}
	e.Start()
	kit.NextSecond() // times in certificates are whole seconds
	for range 3 {
		must(c, "after the backup")
	}
	e.Stop()
	left, err := filepath.Glob(state + "-*")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range left {
		if err := os.Remove(name); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(state, saved, 0o600); err != nil {
		t.Fatal(err)
	}
	e.Start()
	must(c, "after the restore")
	must(c, "and on")

	e.Stop()
	e.CA = e.CA.Beside()
	e.Start()
	must(c, "after another issuing certificate")
	must(c, "and on")

	wiped := e.Stranger(ursula)
	enrol(t, wiped)
	must(wiped, "after a reinstallation")
}

// TestPoisonedCert checks that a record of a generation that no policy grants does not lock out the
// machine of the node.
func TestPoisonedCert(t *testing.T) {
	const highest = 1<<63 - 1
	e := providertest.NewEnv(t, "ursula")
	e.Rotate(ursula, "cert-node", highest)
	e.Start()
	poison := hostapi.Request{Need: "cert-node", Serial: providertest.Serial, Generation: highest, Body: body(ursula)}
	if _, err := e.Client(ursula).Do(t.Context(), hostapi.Path("cert"), poison); err != nil {
		t.Fatal(err)
	}
	e.Rotate(ursula, "cert-node", 1)
	e.ReplaceHostKey(ursula)
	e.Publish(providertest.Serial + 1)
	e.Restart()
	successor := e.Stranger(ursula)
	enrol(t, successor)
	if err := renew(t, successor); err != nil {
		t.Error(err)
	}
}

// lines collects log lines.
type lines struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}
