// Package activation keeps the needs of a host fulfilled. It reads the manifest in force, requests
// missing and due needs from providers, delivers the answers to disk atomically, and restarts or
// reloads the units that a need names.
//
// A fulfilled need causes no request. A restart of activation continues where the last run stopped.
// A need that fails delays only the needs that depend on it.
package activation

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"time"

	"github.com/florete/florete/activation/crl"
	"github.com/florete/florete/activation/distribution"
	"github.com/florete/florete/activation/documents"
	"github.com/florete/florete/activation/event"
	"github.com/florete/florete/activation/fetch"
	"github.com/florete/florete/activation/needstate"
	"github.com/florete/florete/activation/witness"
	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostdir"
	"github.com/florete/florete/internal/hostreport"
)

// Config is what Run works on.
type Config struct {
	State   hostdir.Layout // where everything is kept
	Closure string         // directory with the host's documents; empty to live on what was accepted before
	HostKey string         // file of the SSH host key; empty for DefaultHostKey
	TPM     string         // see fetch.Host

	// Owner is the account of the forwarder: it gets certificates whose need names
	// no owner. Empty for activation's own.
	Owner string

	// Undivided leaves all files to activation's own account, as it is without root.
	Undivided bool

	// Once makes one pass: every need that is due is requested once.
	Once bool

	// Adopt are directories by need: files that were delivered by other means, which
	// a need that was never fulfilled takes over instead of a request.
	Adopt map[string]string

	// Refetch is a directory where touching a file named after a need causes a new request
	// for it, whatever its state, and one named by hostdir.RotateFile a request for another
	// secret; at most every ten seconds. Empty for none.
	Refetch string

	// ClockChanged receives when the wall clock was set or the machine has slept; nil to
	// find out within a minute.
	ClockChanged <-chan struct{}

	Backoff needstate.Backoff
	Notify  Notifier // nil for NewNotifier("")

	// Dial connects to providers; nil for TCP.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)

	// Report receives each event, one at a time; may be nil.
	Report func(event.Event)

	// Status receives how all needs stand, first when the documents are verified and then
	// whenever that changed; may be nil.
	Status func(event.Summary)

	// HostReport returns what the host reports of itself to the provider of its documents,
	// on every change and every five minutes; nil for nothing.
	HostReport func(context.Context) hostreport.Report

	// Arm makes documents from the network go back by themselves, unless a provider answers
	// under them within CommitTimeout, zero for a minute. It returns when a process is at work
	// that goes back (commit.Supervise). Nil, or with Once, they stay in any case.
	Arm           documents.Arm
	CommitTimeout time.Duration

	Step func(name string) // see delivery.Dir; nil but in tests
}

// CommitTimeout is Config.CommitTimeout of whoever names none.
const CommitTimeout = time.Minute

// DefaultHostKey is where OpenSSH keeps a host's ed25519 key.
const DefaultHostKey = "/etc/ssh/ssh_host_ed25519_key"

// Run activates a host until ctx ends, with Once until nothing more is to be done,
// and returns how the needs stand. The error is of the configuration: nothing was
// requested.
func Run(ctx context.Context, c Config) (event.Summary, error) {
	if c.HostKey == "" {
		c.HostKey = DefaultHostKey
	}
	if c.Notify == nil {
		c.Notify = NewNotifier("")
	}
	if c.Report == nil {
		c.Report = func(event.Event) {}
	}
	if c.Status == nil {
		c.Status = func(event.Summary) {}
	}
	if c.Step == nil {
		c.Step = func(string) {}
	}
	c.CommitTimeout = cmp.Or(c.CommitTimeout, CommitTimeout)
	unlock, err := lock(c.State)
	if err != nil {
		return event.Summary{}, err
	}
	defer unlock()
	store, note, err := documents.Open(c.State, c.Closure, c.Step)
	if err != nil {
		return event.Summary{}, err
	}
	if !c.Once {
		store.Arm, store.Timeout = c.Arm, c.CommitTimeout
	}
	a := newActivation(c, store)
	defer a.documents.Close()
	for {
		if err := a.open(note); err != nil {
			return event.Summary{}, err
		}
		a.resumed = false
		if note = a.loop(ctx); note == "" {
			break
		}
		a.Adopt = nil
	}
	s := a.summary()
	if c.Once {
		a.report(s.Event())
	} else {
		stop(c.State, a.report)
	}
	return s, nil
}

// activation is one run. All of it belongs to the goroutine of Run; attempts run
// in their own and send what came of them.
type activation struct {
	Config
	documents *distribution.Follower
	logs      witness.Keeper
	crls      crl.Keeper
	table     *needstate.Table // of the documents in force
	needs     []*need          // of the table, but for the documents
	tried     map[string]bool  // see needstate.Table
	host      *fetch.Host      // under the documents in force
	after     *fetch.Pass      // that goes on over the connection on which this host enrolled; nil for none
	identity  identity
	enrolled  int64     // the identity file whose documents were last taken in
	moment    time.Time // when it was last looked what is due, by both clocks
	settled   bool      // was reported
	resumed   bool      // by an operator
}

// newActivation puts the parts of a run together: what one tells another is here, or is a call of
// the loop's (loop.go).
func newActivation(c Config, store *documents.Store) *activation {
	a := &activation{Config: c, tried: map[string]bool{}, resumed: !c.Once && resumed(c.State)}
	a.documents = &distribution.Follower{Store: store, Timeout: c.CommitTimeout, Report: c.HostReport, Reconnected: a.logs.Soon}
	a.logs.Beside, a.logs.Changed = a.crls.Over, a.documents.ReportSoon
	return a
}

// open begins with the documents in force.
func (a *activation) open(note string) error {
	set := a.documents.Store.Set()
	e := set.Document.Envelope
	a.host = &fetch.Host{
		Layout: a.State, Manifest: set.Manifest, Serial: e.Serial, Tag: set.Tag(), Roots: set.Roots,
		HostKey: a.HostKey, TPM: a.TPM, Dial: a.Dial,
	}
	a.report(event.Event{Event: event.Documents, Message: fmt.Sprintf("%s: manifest of %s, serial %d, %d needs", note, e.Host, e.Serial, len(set.Manifest.Needs))})
	a.table = &needstate.Table{
		Host: a.host, Manifest: e.Digest, Backoff: a.Backoff, Refetch: a.Refetch, Once: a.Once, Tried: a.tried,
		Step: a.Step, Report: a.report, Changed: func() { a.Status(a.summary()) },
	}
	a.needs, a.settled = nil, false
	var documents *needstate.Need
	for _, n := range set.Manifest.Needs {
		added := a.table.Add(n)
		if n.Kind == document.KindConfig {
			documents = added
		} else {
			a.needs = append(a.needs, &need{Need: added})
			a.deliverBundle(added)
		}
		added.Begin(a.resumed)
	}
	a.documents.Open(set, a.table, documents)
	if err := a.adopt(); err != nil {
		return err
	}
	a.Status(a.summary())
	return nil
}

func (a *activation) summary() event.Summary {
	return event.Summary{Stale: a.documents.Stale(), Needs: a.table.Summary()}
}

func (a *activation) report(e event.Event) {
	e.Time = time.Now().Round(0)
	a.Report(e)
}
