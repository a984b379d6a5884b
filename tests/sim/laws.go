package sim

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/florete/florete/activation/event"
	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/providers/server"
	"github.com/florete/florete/providers/ssh"
	"github.com/florete/florete/providers/store"
)

// laws contains the observations with which the laws are checked during a story and after it. The
// laws are in the package documentation. A violation is reported under the name of the law.
type laws struct {
	lines   []string
	seen    map[string]int
	answers map[string][]answer          // by provider and place of the record
	granted map[string]time.Time         // time until which the answer is repeated, by provider and idempotency key
	rows    map[string]int               // number of audit rows, by caller, need and outcome
	told    map[string]int               // number of answers that hosts received, by the same
	quiet   map[string]quiet             // by host and need
	asking  map[string]string            // key of a request not known to be fulfilled, by host and need
	inForce map[string]document.Document // manifest in force, by host
	opened  map[string]time.Time         // time at which the manifest came in force, by host
}

// answer is an answer that a provider has committed to its store.
type answer struct {
	hostapi.Answer
	key        string
	generation int
	repeated   int64 // Unix time until which a repeated request receives the answer; zero means forever
}

// quiet is a period in which a need of a host is not due.
type quiet struct{ from, until time.Time }

// needDocuments is the ID of the need for the documents of a host.
const needDocuments = "config-documents"

var never = time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)

func newLaws() laws {
	return laws{
		seen: map[string]int{}, answers: map[string][]answer{}, granted: map[string]time.Time{}, rows: map[string]int{},
		told: map[string]int{}, quiet: map[string]quiet{}, asking: map[string]string{}, inForce: map[string]document.Document{}, opened: map[string]time.Time{},
	}
}

func (f *Fleet) violated(law, format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	f.log("VIOLATED %s: %s", law, text)
	f.Errorf("law %q: %s", law, text)
}

// committed records the decisions in a transaction that a provider has committed.
func (p *Provider) committed(txn store.Txn) {
	for _, op := range txn.Then {
		if strings.HasPrefix(op.Key, server.AuditPrefix) {
			var row server.Row
			p.f.must(json.Unmarshal(op.Value, &row))
			p.f.decided(p, row)
		}
		if strings.HasPrefix(op.Key, "answers/") {
			p.answered(op)
		}
	}
}

// answered checks the law "once": while an answer is repeated, its idempotency key has no other
// answer.
func (p *Provider) answered(op store.Op) {
	var record struct {
		Key        string
		Generation int
		Expires    int64
		Answer     []byte
	}
	p.f.must(json.Unmarshal(op.Value, &record))
	text, err := p.key.Open(op.Key, record.Answer)
	p.f.must(err)
	a := answer{key: record.Key, generation: record.Generation, repeated: record.Expires}
	p.f.must(json.Unmarshal(text, &a.Answer))
	at := p.name + " " + op.Key
	p.f.lawsMu.Lock()
	before := p.f.answers[at]
	p.f.answers[at] = append(before, a)
	p.f.lawsMu.Unlock()
	for _, b := range before {
		if b.key == a.key && !expired(b.repeated) && !maps.Equal(a.Values, b.Values) {
			p.f.violated("once", "%s: two answers for key %s", at, a.key)
		}
	}
}

func expired(unix int64) bool { return unix != 0 && time.Now().Unix() >= unix }

// decided checks a row of the audit log against these laws:
//
//   - "once", for answers that are not recorded,
//   - "same": a request without an answer is repeated with the same key,
//   - "quiet": a need that is fulfilled and not due is not requested, and
//   - "alone": no host is mistaken for two machines.
func (f *Fleet) decided(p *Provider, row server.Row) {
	caller, need := host(row.Caller), row.Need
	outcome := string(row.Outcome) + row.Code
	if row.Replayed {
		f.count("again")
	}
	f.log("%s: %s %s for %s by %s, again: %v, enrols: %v %s", p.name, outcome, need, caller, row.From, row.Replayed, row.Enrolment, row.Message)
	switch row.Outcome {
	case server.Changed:
		return
	case server.Alarmed:
		f.violated("alone", "%s: %s", p.name, row.Message)
		return
	}
	at := f.net.when(row.From)
	f.lawsMu.Lock()
	f.rows[caller+" "+need+" "+outcome]++
	q := f.quiet[caller+" "+need]
	until, before := f.granted[p.name+row.Key]
	anew := row.Outcome == server.Granted && row.Key != "" && !row.Replayed
	if anew {
		f.granted[p.name+row.Key] = end(row)
	}
	asked := f.asking[caller+" "+need]
	current := !at.Before(f.opened[caller]) // not given up for a newer manifest
	if anew && current {
		f.asking[caller+" "+need] = row.Key
	}
	f.lawsMu.Unlock()
	if anew && current && asked != "" && asked != row.Key {
		f.violated("same", "%s asks %s anew for %s, although it has not had the answer to what it asked before", caller, p.name, need)
	}
	if anew && before && time.Now().Before(until) {
		f.violated("once", "%s decides anew on key %s of %s, need %s", p.name, row.Key, caller, need)
	}
	// A host that polls for documents gets them at any time, and the provider records a row.
	if need != needDocuments && at.After(q.from) && at.Before(q.until) {
		f.violated("quiet", "%s asks %s for %s, fulfilled at %s and not due before %s", caller, p.name, need, f.since(q.from), f.since(q.until))
	}
}

// end returns the time until which the provider repeats the answer that a row of the audit log
// records.
func end(row server.Row) time.Time {
	if row.Kind == ssh.Name {
		return row.Time.Add(ssh.Repeated).Truncate(time.Second)
	}
	if at, err := time.Parse(time.RFC3339, row.Detail["until"]); err == nil {
		return at
	}
	return never
}

// host returns the name of the host that a caller belongs to. It returns "nobody" if the caller has
// no host.
func host(caller string) string {
	id, err := spiffe.ParseID(caller)
	if err != nil {
		return "nobody"
	}
	return id.Name()
}

func (f *Fleet) since(t time.Time) time.Duration { return t.Sub(f.began).Round(time.Second) }

// event records an event that activation on a host reports, so that the laws can be checked.
func (h *Host) event(e event.Event) {
	f := h.f
	f.log("%s: %s", h.name, strings.SplitN(e.String(), "\n", 2)[0])
	at := h.name + " " + e.Need
	switch e.Event {
	case event.Documents:
		h.documents()
	case event.Disk:
		f.violated("disk", "%s: %s", h.name, e)
	case event.Failed:
		f.count(e.Code)
		f.lawsMu.Lock()
		defer f.lawsMu.Unlock()
		delete(f.quiet, at)
		switch e.Code {
		case hostapi.CodeClock.Name, hostapi.CodeUntrusted.Name: // the host cannot use the answer
			delete(f.asking, at)
		case hostapi.CodePolicyBehind.Name, hostapi.CodeDeviceKey.Name, hostapi.CodeNotGranted.Name, hostapi.CodeMismatch.Name, hostapi.CodeRotated.Name, hostapi.CodeReplayed.Name, hostapi.CodeBadNonce.Name:
			f.told[at+" "+string(e.Kind)+e.Code]++
		}
	case event.Fulfilled, event.Kept:
		q := quiet{time.Now(), e.Next.Add(-time.Second)}
		if e.Next.IsZero() {
			q.until = never
		}
		f.lawsMu.Lock()
		defer f.lawsMu.Unlock()
		f.quiet[at] = q
		delete(f.asking, at)
		if e.Event == event.Fulfilled && e.Need != needDocuments {
			f.told[at+" "+string(server.Granted)]++
		}
	}
}

// documents checks the law "forward": the serial in force decreases only if the operator rolls
// back. It also records that a new manifest may make a need due.
func (h *Host) documents() {
	d, err := h.State().Manifest()
	if err != nil {
		return // the host has died meanwhile
	}
	h.mu.Lock()
	h.serial = d.Envelope.Serial
	h.mu.Unlock()
	f := h.f
	f.lawsMu.Lock()
	before, known := f.inForce[h.name]
	f.inForce[h.name], f.opened[h.name] = d, time.Now()
	f.lawsMu.Unlock()
	if !known {
		return
	}
	if before.Envelope.Newer(d.Envelope) {
		f.violated("forward", "%s: manifest of serial %d in force after one of serial %d", h.name, d.Envelope.Serial, before.Envelope.Serial)
	}
	for _, o := range before.Manifest().Needs {
		for _, n := range d.Manifest().Needs {
			if o.ID == n.ID && o.Generation != n.Generation {
				f.lawsMu.Lock()
				delete(f.quiet, h.name+" "+n.ID)
				delete(f.asking, h.name+" "+n.ID)
				f.lawsMu.Unlock()
			}
		}
	}
}

// forget removes the records of the times at which the host's needs are due.
func (h *Host) forget() {
	f := h.f
	f.lawsMu.Lock()
	defer f.lawsMu.Unlock()
	maps.DeleteFunc(f.asking, func(at, _ string) bool { return strings.HasPrefix(at, h.name+" ") })
	maps.DeleteFunc(f.quiet, func(at string, _ quiet) bool { return strings.HasPrefix(at, h.name+" ") })
}
