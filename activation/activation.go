// Package activation obtains the files that a host needs, such as certificates and client secrets,
// and keeps them current. It reads the list of needs from the host's manifest, requests missing and
// due files from providers, writes them to disk atomically, and restarts the units that use them.
//
// A need that is fulfilled and not due causes no request. After a restart, activation continues
// from its recorded state. A need that fails delays only the needs that depend on it.
package activation

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"time"

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

// Config contains the parameters of Run.
type Config struct {
	State   hostdir.Layout // state directory of the host
	Closure string         // directory with the host's documents; if empty, the documents in State are used
	HostKey string         // file of the SSH host key; default DefaultHostKey
	TPM     string         // device of the TPM that keeps the host's key, see fetch.Host

	// Owner is the account that the forwarder runs as. It owns the delivered certificates whose
	// needs declare no owner. If Owner is empty, these certificates belong to the account of
	// activation.
	Owner string

	// Undivided makes the account of activation the owner of all delivered files. This is always
	// the case if activation does not run as root.
	Undivided bool

	// Once makes Run request each due need once and then return.
	Once bool

	// Adopt maps the ID of a need to a directory with files that were delivered by other means. If
	// the need was never fulfilled, activation takes over these files instead of requesting new
	// ones.
	Adopt map[string]string

	// Refetch is a directory in which a person requests work by touching a file. Touching a file
	// named after a need requests that need again, whatever its state. Touching a file named by
	// hostdir.RotateFile requests a new secret, at most every ten seconds. If Refetch is empty,
	// activation accepts no such requests.
	Refetch string

	// ClockChanged receives a value when the wall clock was set or the machine has slept.
	// WatchClock sends these values. If ClockChanged is nil, activation notices such a change
	// within a minute.
	ClockChanged <-chan struct{}

	Backoff needstate.Backoff
	Notify  Notifier // default NewNotifier("")

	// Dial connects to providers. If it is nil, TCP is used.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)

	// Report is called with each event of activation, one at a time. It may be nil.
	Report func(event.Event)

	// Status is called with the status of all needs: first when the documents have been verified,
	// and then after each change. It may be nil.
	Status func(event.Summary)

	// HostReport returns the report of the host. Activation sends it to the provider of the host's
	// documents after every change and every five minutes. If HostReport is nil, no reports are
	// sent.
	HostReport func(context.Context) hostreport.Report

	// Arm starts a process that withdraws new documents from the network if they cut the host off
	// from its providers (confirm.Supervise). It returns when that process is running. The documents
	// become permanent when a provider answers under them within ConfirmTimeout. If Arm is nil, or
	// with Once, new documents are permanent at once. If ConfirmTimeout is zero, the constant
	// ConfirmTimeout is used.
	Arm            documents.Arm
	ConfirmTimeout time.Duration

	Step func(name string) // called before each change on disk, see delivery.Dir; only used in tests
}

// ConfirmTimeout is the default of Config.ConfirmTimeout.
const ConfirmTimeout = time.Minute

// DefaultHostKey is the path at which OpenSSH keeps the host's Ed25519 key. It is used if
// Config.HostKey is empty.
const DefaultHostKey = "/etc/ssh/ssh_host_ed25519_key"

// Run requests and renews the files that a host needs until ctx ends, and returns the final status
// of all needs. With Config.Once, it returns as soon as nothing is left to do. If the configuration
// is invalid, Run returns an error without requesting anything.
func Run(ctx context.Context, c Config) (event.Summary, error) {
	c.HostKey = cmp.Or(c.HostKey, DefaultHostKey)
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
	c.ConfirmTimeout = cmp.Or(c.ConfirmTimeout, ConfirmTimeout)
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
		store.Arm, store.Timeout = c.Arm, c.ConfirmTimeout
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

// activation is the state of a Run. Only the goroutine of Run uses it. Requests run in their own
// goroutines and send their results to that goroutine.
type activation struct {
	Config
	documents *distribution.Follower
	logs      witness.Keeper
	crls      crlKeeper
	table     *needstate.Table // needs of the documents in force
	needs     []*need          // needs in table, except the need for the host's documents
	tried     map[string]bool  // see needstate.Table
	host      *fetch.Host      // this host, as the documents in force describe it
	after     *fetch.Pass      // pass that continues on the connection on which this host enrolled; nil for none
	svids     hostdir.SVIDCache
	identity  identity
	enrolled  int64     // modification time of the identity file whose documents were last accepted
	moment    time.Time // last check for due needs, with the reading of the monotonic clock
	settled   bool      // reportSettled has reported the status
	resumed   bool      // an operator or a deployment restarted activation, see resumed
}

// newActivation creates the parts of a run and connects them. The loop in loop.go makes the other
// calls between these parts.
func newActivation(c Config, store *documents.Store) *activation {
	a := &activation{Config: c, tried: map[string]bool{}, resumed: !c.Once && resumed(c.State)}
	a.documents = &distribution.Follower{Store: store, Timeout: c.ConfirmTimeout, Report: c.HostReport, Reconnected: a.logs.Soon}
	a.logs.Beside, a.logs.Changed = a.crls.Over, a.documents.ReportSoon
	return a
}

// open starts to use the documents in force. The note says where the documents came from.
func (a *activation) open(note string) error {
	set := a.documents.Store.Set()
	e := set.Document.Envelope
	a.documents.Store.ExpectGrants()
	a.host = &fetch.Host{
		Layout: a.State, Manifest: set.Manifest, Serial: e.Serial, Tag: set.Tag(), Roots: set.Roots, Grants: a.documents.Store.GrantsTag,
		SVIDs: &a.svids, HostKey: a.HostKey, TPM: a.TPM, Dial: a.Dial,
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
	return event.Summary{Stale: a.documents.Stale(), Withheld: a.documents.Withheld(), Needs: a.table.Summary()}
}

func (a *activation) report(e event.Event) {
	e.Time = time.Now().Round(0)
	a.Report(e)
}
