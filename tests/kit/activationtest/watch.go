package activationtest

import (
	"encoding/base64"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/florete/florete/internal/hostapi"
)

// watchHold is the time for which the provider holds a watch open if there are no newer documents.
// The value was chosen so that a watch does not end at the moment at which a host checks its
// report.
const watchHold = 4*time.Minute + 3500*time.Millisecond

// SetWatch turns the provider's support for watches on or off. A watch is a request that the
// provider answers only when it has newer documents for the host.
func (p *Provider) SetWatch(offered bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.watching = offered
}

// Watches returns the watches that the provider has received. In each Call, Has is the entity tag
// of the documents that the host had, and Serial is the revision from which the host watched.
func (p *Provider) Watches() (calls []Call) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append(calls, p.watches...)
}

// Unknown returns the watches that the provider refused because its support for watches was off.
func (p *Provider) Unknown() (calls []Call) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append(calls, p.unknown...)
}

// Cut closes all open connections to the provider.
func (p *Provider) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.accepted {
		c.Close()
	}
}

// Connections returns how many connections the provider has accepted so far.
func (p *Provider) Connections() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.opened
}

func (p *Provider) connection(c net.Conn, to http.ConnState) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch to {
	case http.StateNew:
		p.opened++
		p.accepted[c] = true
	case http.StateClosed:
		delete(p.accepted, c)
	}
}

// watch handles a watch. It answers as soon as the provider's documents differ from the revision
// and tag in the request.
func (p *Provider) watch(w http.ResponseWriter, r *http.Request) {
	from, err := strconv.ParseInt(r.URL.Query().Get("from"), 10, 64)
	p.cluster.must(err)
	proof, err := base64.StdEncoding.DecodeString(r.Header.Get(hostapi.HeaderDevice))
	p.cluster.must(err)
	has := r.Header.Get(hostapi.HeaderHas)
	p.mu.Lock()
	offered := p.watching
	call := Call{At: time.Now(), Path: r.URL.Path, Serial: from, Has: has}
	if offered {
		p.watches = append(p.watches, call)
	} else {
		p.unknown = append(p.unknown, call)
	}
	p.mu.Unlock()
	if !offered {
		reply(w, nil, hostapi.Errorf(hostapi.CodeUnknownMethod, "%s: no such endpoint", r.URL.Path))
		return
	}
	if e := p.authenticate(r.TLS, hostapi.Request{Device: string(proof)}); e != nil {
		reply(w, nil, e)
		return
	}
	ends := time.NewTimer(watchHold)
	defer ends.Stop()
	for {
		p.mu.Lock()
		a, changed := p.artifact(r), p.changed
		p.mu.Unlock()
		w.Header().Set(hostapi.HeaderRevision, strconv.FormatInt(a.Revision, 10))
		if from != a.Revision && has != a.Tag() || a.Revocations != nil {
			reply(w, a, nil)
			return
		}
		select {
		case <-changed:
		case <-ends.C:
			w.WriteHeader(http.StatusNotModified)
			return
		case <-r.Context().Done():
			return
		}
	}
}
