package activationtest

import (
	"encoding/base64"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/florete/florete/internal/hostapi"
)

// watchHold is how long a watch waits for an answer: not when a host looks for what it reports.
const watchHold = 4*time.Minute + 3500*time.Millisecond

// SetWatch makes the provider one that offers watches, for calls from now on.
func (p *Provider) SetWatch(offered bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.watching = offered
}

// Watches are the watches so far; Has is the tag and Serial the revision that each named.
func (p *Provider) Watches() (calls []Call) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append(calls, p.watches...)
}

// Unknown are the calls for a watch that was not offered.
func (p *Provider) Unknown() (calls []Call) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append(calls, p.unknown...)
}

// Cut cuts all connections.
func (p *Provider) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.accepted {
		c.Close()
	}
}

// Connections is how many there were.
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

// watch answers when another offer is made than that of the revision and tag in a request.
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
		a, changed := hostapi.Artifact{Documents: p.offer, Revision: p.revision}, p.changed
		p.mu.Unlock()
		w.Header().Set(hostapi.HeaderRevision, strconv.FormatInt(a.Revision, 10))
		if from != a.Revision && has != a.Tag() {
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
