package server

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/internal/strictjson"
	"github.com/florete/florete/internal/terminal"
	"github.com/florete/florete/providers/store"
)

// AuditPrefix is the prefix of the keys under which audit rows are stored. The keys sort by time.
const AuditPrefix = "audit/"

// Audit writes the audit log, which records the decisions of a provider. Each row goes to the state
// store and, as a line, to the logger. To keep the log small, the refusals of each caller are
// limited, and so are the rows about each network from which callers without a verified certificate
// connect. Rows beyond a limit are only counted; see Sum.
type Audit struct {
	store  store.Store
	logger *slog.Logger

	mu       sync.Mutex
	since    time.Time // of the interval; zero before its first row
	rows     int       // of strangers, in the interval
	networks map[netip.Prefix]*network
	callers  map[string]*network // known ones, by SPIFFE ID
}

// NewAudit returns an audit log that is kept in the store s.
func NewAudit(s store.Store, l *slog.Logger) *Audit {
	return &Audit{store: s, logger: l, networks: map[netip.Prefix]*network{}, callers: map[string]*network{}}
}

// Write writes a row about an authenticated caller to the audit log.
func (a *Audit) Write(ctx context.Context, r Row) error {
	_, err := a.commit(ctx, Change{}, r, true)
	return err
}

// commit makes a change of state and writes its audit row. It returns the revision, or zero if
// nothing changed.
func (a *Audit) commit(ctx context.Context, c Change, r Row, known bool) (revision int64, err error) {
	whole := !c.Unrecorded && (known && len(c.Then) > 0 || known && a.admitKnown(r) || !known && a.admit(r))
	if whole {
		c.Then = append(c.Then, r.Op())
	}
	if len(c.Then) > 0 || len(c.If) > 0 {
		if revision, err = a.store.Commit(ctx, store.Txn{If: c.If, Then: c.Then}); err != nil {
			return 0, err
		}
	}
	if whole {
		r.Log(ctx, a.logger)
	}
	return revision, nil
}

// auditKey returns a key for a time. It sorts before the audit rows of that time and after all
// earlier rows.
func auditKey(t time.Time) string { return fmt.Sprintf("%s%016x", AuditPrefix, t.UnixNano()) }

// AuditAfter returns a key that sorts after the audit rows of the time t and before all later rows.
func AuditAfter(t time.Time) string { return auditKey(t) + "~" }

// Outcome is the result of a decision in the audit log, such as "granted".
type Outcome string

// Granted and Summed are outcomes in the audit log. All other outcomes of requests are error
// classes.
const (
	Granted Outcome = "granted"
	Summed  Outcome = "summed" // sums, by code in Detail, of the answers to one network, or the refusals of one caller, without rows of their own
)

// These are codes of audit rows that are not about a request. They are never sent to a host.
const (
	CodeNonce     = "nonce"     // a nonce that was given out; counted alone
	CodeHandshake = "handshake" // no TLS handshake, or none that this provider accepts
)

// Row is a row of the audit log, and usually records one decision. Store it in the same transaction
// as the changes that follow from the decision; see Op.
type Row struct {
	Time      time.Time         `json:"time"`
	From      string            `json:"from"`   // network address of the caller; for Summed, the network
	Caller    string            `json:"caller"` // SPIFFE ID, empty when unknown
	Kind      string            `json:"kind"`
	Need      string            `json:"need"`
	Key       string            `json:"key"`    // idempotency key of the request
	Serial    int64             `json:"serial"` // serial of the host's manifest
	Outcome   Outcome           `json:"decision"`
	Code      string            `json:"code,omitempty"`
	Message   string            `json:"message,omitempty"`
	Enrolment bool              `json:"enrolment,omitempty"` // the caller is known by a proof, not by a certificate
	Replayed  bool              `json:"replayed,omitempty"`  // the answer was the recorded answer of the same request
	Detail    map[string]string `json:"detail,omitempty"`

	CountAs string `json:"-"` // code under which a stranger's row is counted; empty for Code
}

// maxMessage is the largest length of a message in an audit row. It limits how much text a caller
// can write to the log by causing a refusal.
const maxMessage = 500

// Refuse returns a copy of the row about a refused request. Its outcome, code and message are those
// of the error e.
func (r Row) Refuse(e *hostapi.Error) Row {
	r.Outcome, r.Code, r.Message = Outcome(e.Kind), e.Code, message(e.Message)
	return r
}

// Suspect returns an audit row about suspicious input, such as a bundle from another cluster, which
// this provider refused. The outcome of the row is Alarmed.
func Suspect(now time.Time, kind, code string, err error, detail map[string]string) Row {
	return Row{Time: now.UTC(), Kind: kind, Outcome: Alarmed, Code: code, Message: message(err.Error()), Detail: detail}
}

func message(text string) string {
	text = terminal.Text(text)
	if len(text) > maxMessage {
		text = strings.ToValidUTF8(text[:maxMessage], "") + "…"
	}
	return text
}

// known reports whether the caller of the row is known: its certificate names it, or it was granted
// a request. All other callers are strangers.
func (r Row) known() bool {
	return r.Outcome == Granted || r.Caller != "" && !r.Enrolment
}

// refusal reports whether the row is about a refused request.
func (r Row) refusal() bool {
	switch hostapi.Class(r.Outcome) {
	case hostapi.Transient, hostapi.Denied, hostapi.Invalid:
		return true
	}
	return false
}

// Op returns the operation that appends the row to the audit log. Commit it in the same transaction
// as the decision that the row records.
func (r Row) Op() store.Op {
	b := strictjson.Encode(r)
	return store.Put(auditKey(r.Time)+"-"+rand.Text()[:8], b)
}

// Ops returns the operations that append several rows to the audit log.
func Ops(rows []Row) (ops []store.Op) {
	for _, r := range rows {
		ops = append(ops, r.Op())
	}
	return ops
}

// Log writes the row to a logger. Call it after the row was stored.
func (r Row) Log(ctx context.Context, l *slog.Logger) {
	if !l.Enabled(ctx, r.level()) {
		return
	}
	var set []slog.Attr
	add := func(a slog.Attr, is bool) {
		if is {
			set = append(set, a)
		}
	}
	add(slog.String("from", r.From), r.From != "")
	add(slog.String("caller", r.Caller), r.Caller != "")
	add(slog.String("kind", r.Kind), r.Kind != "")
	add(slog.String("need", r.Need), r.Need != "")
	add(slog.Int64("serial", r.Serial), r.Serial != 0)
	add(slog.String("code", r.Code), r.Code != "")
	add(slog.String("message", r.Message), r.Message != "")
	add(slog.Bool("enrolment", true), r.Enrolment)
	add(slog.Bool("replayed", true), r.Replayed)
	for _, k := range slices.Sorted(maps.Keys(r.Detail)) {
		add(slog.String("detail."+k, r.Detail[k]), true)
	}
	l.LogAttrs(ctx, r.level(), string(r.Outcome), set...)
}
