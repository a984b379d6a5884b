package tls

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/go-acme/lego/v4/acme"
	legoapi "github.com/go-acme/lego/v4/acme/api"

	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/internal/strictjson"
	"github.com/florete/florete/internal/terminal"
	"github.com/florete/florete/providers/store"
)

// orders is the beginning of the keys that record which process orders the certificate for a name,
// and the result of the last order.
const orders = "tls/orders/"

// maxReason is the largest part of a CA's message that hosts receive, in bytes.
const maxReason = 600

// attempt is an order that is open, or the last order that failed.
type attempt struct {
	Open     int64         `json:"open,omitempty"` // until when it is, in Unix seconds
	Failures int           `json:"failures"`       // in a row
	Rest     int64         `json:"rest"`           // no other before that
	Kind     hostapi.Class `json:"kind,omitempty"`
	Reason   string        `json:"reason,omitempty"`
}

// flight is an order that this process is carrying out.
type flight struct {
	key    string // of the record that it is for
	public string // of whose key, empty for a shared one
	done   chan struct{}
	record *record
	err    error
}

// order orders the certificate for a call and waits for the result. If an order for the same names
// is open, it waits for the result of that order, because only one order may be open for a set of
// names.
func (k *Certificates) order(ctx context.Context, w wanted, former *record) (*record, error) {
	public := ""
	if w.csr != nil {
		public = fingerprint(w.csr.RawSubjectPublicKeyInfo)
	}
	k.mu.Lock()
	f := k.flights[w.names()]
	if f == nil {
		f = &flight{key: w.key(), public: public, done: make(chan struct{})}
		k.flights[w.names()] = f
		k.owned.Go(func() { k.fly(f, w, former) })
	}
	k.mu.Unlock()
	pending := func(why string) error {
		return hostapi.Errorf(hostapi.CodeBusy, "%s: %s: request again", w.names(), why).After(5 * time.Second)
	}
	if f.key != w.key() || f.public != public {
		return nil, pending("a certificate of another key is being ordered")
	}
	late := time.NewTimer(patience)
	defer late.Stop()
	select {
	case <-f.done:
		return f.record, f.err
	case <-late.C:
		return nil, pending("the CA is not done yet")
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// fly carries out an order from beginning to end, even if no caller waits for it any more.
func (k *Certificates) fly(f *flight, w wanted, former *record) {
	ctx, cancel := context.WithTimeoutCause(k.ctx, orderTime, fmt.Errorf("the CA was not done after %s", orderTime))
	defer cancel()
	f.record, f.err = k.fulfil(ctx, w, former)
	if f.err != nil && k.ctx.Err() != nil {
		f.err = context.Canceled
	}
	k.mu.Lock()
	delete(k.flights, w.names())
	k.mu.Unlock()
	close(f.done)
}

// fulfil orders a certificate and stores the result. If it is too early for another attempt, fulfil
// returns an error instead.
func (k *Certificates) fulfil(ctx context.Context, w wanted, former *record) (*record, error) {
	now := time.Now()
	at := orders + w.names()
	last, revision, err := k.attempt(ctx, at)
	switch {
	case err != nil:
		return nil, err
	case last.Open > now.Unix():
		return nil, hostapi.Errorf(hostapi.CodeBusy, "%s: another process orders it, or ended while it did: request again", w.names()).After(time.Unix(last.Open, 0).Sub(now))
	case last.Rest > now.Unix():
		return nil, last.refusal(now)
	}
	begun := attempt{Open: now.Add(orderTime).Unix(), Failures: last.Failures}
	if revision, err = k.db.Commit(ctx, store.Txn{If: []store.Cond{{Key: at, Modified: revision}}, Then: []store.Op{put(at, begun)}}); err != nil {
		return nil, err
	}
	r, err := k.obtained(ctx, w, former)
	// The result is stored even if this process is about to end.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	mine := []store.Cond{{Key: at, Modified: revision}}
	if err != nil {
		now := time.Now()
		failed := last.failed(err, now)
		if k.ctx.Err() != nil { // not the CA's failure
			failed = last
		}
		k.Logger.WarnContext(ctx, "an order failed", "names", w.Names, "error", err, "again", stamp(failed.Rest))
		if _, kept := k.db.Commit(ctx, store.Txn{If: mine, Then: []store.Op{put(at, failed)}}); kept != nil {
			return nil, errors.Join(err, kept)
		}
		return nil, failed.refusal(now)
	}
	_, before, err := k.read(ctx, w.key())
	if err != nil {
		return nil, err
	}
	d, err := k.write(w.key(), before, r)
	if err == nil {
		_, err = k.db.Commit(ctx, store.Txn{If: append(mine, d.If...), Then: append(d.Then, store.Delete(at))})
	}
	if err != nil {
		return nil, err
	}
	k.Logger.InfoContext(ctx, "a certificate was issued", "names", w.Names, "serial", r.Serial, "until", stamp(r.Ends))
	return r, nil
}

// obtained returns the record of a certificate that the CA issues for an order.
func (k *Certificates) obtained(ctx context.Context, w wanted, former *record) (*record, error) {
	key, csr := "", w.csr
	var err error
	if w.Shared {
		if key, csr, err = newKey(w.Names); err != nil {
			return nil, err
		}
	}
	var replaces *x509.Certificate
	if former != nil {
		if replaces, err = leafOf(former.Chain); err != nil {
			return nil, err
		}
	}
	chain, err := k.obtain(ctx, w.policy, w.Names, csr, replaces)
	if err != nil {
		return nil, err
	}
	r, err := newRecord(chain, w, time.Now())
	if err == nil && r.Public != fingerprint(csr.RawSubjectPublicKeyInfo) {
		err = errors.New("the CA issued for another key")
	}
	if err != nil {
		return nil, err
	}
	r.Key = key
	return r, nil
}

func put(key string, a attempt) store.Op {
	b := strictjson.Encode(a)
	return store.Put(key, b)
}

// attempt reads the last attempt, and the revision that wrote it. Both are zero if there was no
// attempt.
func (k *Certificates) attempt(ctx context.Context, at string) (a attempt, revision int64, err error) {
	revision, err = store.Load(ctx, k.db, at, &a)
	return a, revision, err
}

// failed returns the attempt after an error. The next attempt waits as long as the CA requests. If
// the CA requests no time, it waits 10 seconds, doubled with each failure up to an hour.
func (a attempt) failed(err error, now time.Time) attempt {
	rest := time.Hour
	if a.Failures < 9 {
		rest = min(rest, 10*time.Second<<a.Failures)
	}
	a = attempt{Failures: a.Failures + 1, Kind: hostapi.Transient}
	reason := err.Error()
	var limited *acme.RateLimitedError
	var problem *acme.ProblemDetails
	switch {
	case errors.As(err, new(notYet)):
		a.Failures, rest = 0, 5*time.Second
	case errors.As(err, &limited):
		if d, err := legoapi.ParseRetryAfter(limited.RetryAfter); err == nil && d > 0 {
			rest = d
		}
		reason = limited.Detail
	case errors.As(err, &problem):
		reason = problem.Detail
		switch kind := problem.Type[strings.LastIndex(problem.Type, ":")+1:]; kind {
		case "rejectedIdentifier", "unsupportedIdentifier", "caa", "badCSR", "externalAccountRequired", "userActionRequired":
			a.Kind, rest = hostapi.Denied, time.Hour
			reason = kind + ": " + reason
		default:
			reason = kind + ": " + reason
		}
	}
	if len(reason) > maxReason {
		reason = strings.ToValidUTF8(reason[:maxReason], "") + "…"
	}
	a.Rest, a.Reason = now.Add(rest).Unix(), terminal.Text(reason)
	return a
}

// refusal returns the error that hosts receive until the next attempt.
func (a attempt) refusal(now time.Time) error {
	return hostapi.Errorf(hostapi.Refused(a.Kind), "no certificate yet: %s", a.Reason).After(max(time.Second, time.Unix(a.Rest, 0).Sub(now)))
}
