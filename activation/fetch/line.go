package fetch

import (
	"context"
	"reflect"
	"time"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostapi"
)

const (
	// lineLife is how long a line is used: then the provider is verified anew, and this host
	// presents its newest SVID.
	lineLife = time.Hour

	// lineIdle is less than a provider keeps a connection without a request.
	lineIdle = 20 * time.Second

	// leave is how long a provider of documents may be silent where there are others. They
	// may have other documents, so they are not tried beside it.
	leave = 2 * time.Second
)

// Line is a connection to a provider of this host's documents that lasts: watches, reports
// and requests for documents go over it, one after the other. Who has it uses it alone.
type Line struct {
	Provider string // host name

	at     document.Provider
	roots  []string
	client *hostapi.Client
	calls  *hostapi.Calls
	ends   time.Time
	used   time.Time
}

// toDocuments is an attempt that leads to a provider of documents, and to no other.
func toDocuments(provider string) Attempt {
	return Attempt{Provider: provider, Need: document.Need{Kind: document.KindConfig}}
}

// documentsAt returns where a provider has documents; its ID is zero for a provider that has none.
func (h *Host) documentsAt(provider string) document.Provider {
	return h.Manifest.Providers[provider][document.KindConfig]
}

// Line is one to a provider: last, which may be nil, unless it leads elsewhere or is too old.
// last is not to be used any more. With others, a provider that is silent is left soon.
func (h *Host) Line(last *Line, provider string, others bool) (*Line, *Error) {
	now, at := time.Now(), h.documentsAt(provider)
	if last.Free(now) && last.Provider == provider &&
		reflect.DeepEqual(last.at, at) && reflect.DeepEqual(last.roots, h.Manifest.Trust.Roots) {
		last.client.Serial, last.client.Tag, last.client.Revocations = h.Serial, h.Tag, h.Roots.Revocations().InForce()
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

// Free reports whether the connection is likely to be there still.
func (l *Line) Free(now time.Time) bool {
	return l != nil && now.Before(l.ends) && now.Before(l.used.Add(lineIdle))
}

// Close closes the connection. A nil Line has none.
func (l *Line) Close() {
	if l != nil {
		l.calls.Close()
	}
}

// Artifact gets the documents that the provider has for this host, unless they are those in
// force.
func (l *Line) Artifact(ctx context.Context) (hostapi.Artifact, *Error) {
	a, err := l.calls.Artifact(ctx)
	l.used = time.Now()
	return a, received(err)
}

// Watch waits for others than those in force, see hostapi.Calls.
func (l *Line) Watch(ctx context.Context, from int64) (hostapi.Artifact, *Error) {
	a, err := l.calls.Watch(ctx, from)
	l.used = time.Now()
	return a, received(err)
}

// Report sends what this host reports of itself.
func (l *Line) Report(ctx context.Context, report []byte) (hostapi.Reported, error) {
	a, err := l.calls.Report(ctx, report)
	l.used = time.Now()
	return a, err
}
