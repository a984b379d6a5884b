package server

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"time"
	"unicode"

	"florete/providers/api"
	"florete/providers/store"
)

// AuditPrefix starts the keys of audit rows. The rows are in the order of the
// revision that made them.
const AuditPrefix = "audit/"

// Outcome of a decision.
type Outcome string

// Granted is an outcome; the others are kinds of error.
const Granted Outcome = "granted"

// Row is one decision in the audit log, written in the transaction that makes it.
type Row struct {
	Time    time.Time         `json:"time"`
	From    string            `json:"from"`   // network address
	Caller  string            `json:"caller"` // SPIFFE ID, empty when unknown
	Kind    string            `json:"kind"`
	Need    string            `json:"need"`
	Key     string            `json:"key"`    // of idempotency
	Serial  int64             `json:"serial"` // of the host's manifest
	Outcome Outcome           `json:"decision"`
	Code    string            `json:"code,omitempty"`
	Message string            `json:"message,omitempty"`
	Enrols  bool              `json:"enrols,omitempty"` // known by a proof, not a certificate
	Again   bool              `json:"again,omitempty"`  // the recorded answer of the same request
	Detail  map[string]string `json:"detail,omitempty"`
}

// maxMessage bounds what a caller can have written into a row by having it refused.
const maxMessage = 500

// refuse makes the row one of a refusal.
func (r Row) refuse(e *api.Error) Row {
	r.Outcome, r.Code, r.Message = Outcome(e.Kind), e.Code, plain(e.Message)
	if len(r.Message) > maxMessage {
		r.Message = strings.ToValidUTF8(r.Message[:maxMessage], "") + "…"
	}
	return r
}

// plain is what a stranger wrote, as people can read it: without what would steer
// their terminal.
func plain(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return ' '
	}, s)
}

// op appends the row.
func (r Row) op() store.Op {
	b, err := json.Marshal(r)
	if err != nil {
		panic(err) // strings and integers
	}
	return store.Put(fmt.Sprintf("%s%016x-%s", AuditPrefix, r.Time.UnixNano(), rand.Text()[:8]), b)
}

func (r Row) log(ctx context.Context, l *slog.Logger) {
	l.Log(ctx, r.level(), string(r.Outcome), "from", r.From, "caller", r.Caller, "kind", r.Kind, "need", r.Need,
		"serial", r.Serial, "code", r.Code, "message", r.Message, "enrols", r.Enrols, "again", r.Again, "detail", r.Detail)
}
