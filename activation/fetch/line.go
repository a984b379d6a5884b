package fetch

import (
	"context"
	"reflect"
	"time"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostapi"
)

const (
	// lineLife is the time for which a line is used before it is replaced. The host then verifies the
	// provider again, and presents its own newest SVID.
	lineLife = time.Hour

	// lineIdle is the time for which an unused line can be kept. It is shorter than the time after
	// which a provider closes an idle connection.
	lineIdle = 20 * time.Second

	// leave is the time that the host waits for a silent provider of documents if there are other
	// providers. The providers are not tried in parallel, because their documents may differ.
	leave = 2 * time.Second
)

// Line is a long-lived connection to a provider of this host's documents. Watches, reports and
// requests for documents share the connection, one at a time. A Line must not be used by several
// goroutines at once.
type Line struct {
	Provider string // name of the provider host

	at     document.Provider
	roots  []string
	client *hostapi.Client
	calls  *hostapi.Calls
	ends   time.Time
	used   time.Time
}

// toDocuments returns an attempt that requests documents only from the given provider.
func toDocuments(provider string) Attempt {
	return Attempt{Provider: provider, Need: document.Need{Kind: document.KindConfig}}
}

// documentsAt returns the address of the process that serves documents on a provider host. If there
// is no such process, the ID in the result is zero.
func (h *Host) documentsAt(provider string) document.Provider {
	return h.Manifest.Providers[provider][document.KindConfig]
}

// Line returns a long-lived connection to a provider. If last is a recent connection to the same
// provider, it is used again. Otherwise last is closed, unless it is nil. The caller must not use
// last afterwards. If others is true, there are other providers to try, and a silent provider is
// abandoned sooner. The caller must close the result.
func (h *Host) Line(last *Line, provider string, others bool) (*Line, *Error) {
	now, at := time.Now(), h.documentsAt(provider)
	if last.Free(now) && last.Provider == provider &&
		reflect.DeepEqual(last.at, at) && reflect.DeepEqual(last.roots, h.Manifest.Trust.Roots) {
		last.client.Serial, last.client.Tag, last.client.Revocations = h.Serial, h.Tag, h.Roots.Revocations().InForce()
		last.client.Grants = h.grants()
		return last, nil
	}
	last.Close()
	svid, failed := h.svid()
	if failed != nil {
		return nil, failed
	}
	key, failed := h.hostKey()
	if failed != nil {
		return nil, failed
	}
	client := h.client(toDocuments(provider), svid, key)
	if others {
		client.Patience = leave
	}
	l := &Line{Provider: provider, at: at, roots: h.Manifest.Trust.Roots, client: client, calls: client.Calls(), ends: now.Add(lineLife), used: now}
	if svid.Leaf != nil && svid.Leaf.NotAfter.Before(l.ends) {
		l.ends = svid.Leaf.NotAfter
	}
	return l, nil
}

// Free reports whether the connection is probably still open, so that it can be used again. It
// returns false for a nil Line.
func (l *Line) Free(now time.Time) bool {
	return l != nil && now.Before(l.ends) && now.Before(l.used.Add(lineIdle))
}

// Close closes the connection. It may be called on a nil Line.
func (l *Line) Close() {
	if l != nil {
		l.calls.Close()
	}
}

// Artifact fetches the newest documents for this host. If the host already has them, the result
// contains no documents.
func (l *Line) Artifact(ctx context.Context) (hostapi.Artifact, *Error) {
	a, err := l.calls.Artifact(ctx)
	l.used = time.Now()
	return a, received(err)
}

// Watch waits until the provider has documents that are newer than the revision from, and returns
// them. See hostapi.Calls.Watch.
func (l *Line) Watch(ctx context.Context, from int64) (hostapi.Artifact, *Error) {
	a, err := l.calls.Watch(ctx, from)
	l.used = time.Now()
	return a, received(err)
}

// Report sends the report of this host to the provider.
func (l *Line) Report(ctx context.Context, report []byte) (hostapi.Reported, error) {
	a, err := l.calls.Report(ctx, report)
	l.used = time.Now()
	return a, err
}
