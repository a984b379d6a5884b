package hostapi

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"encoding/pem"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/florete/florete/internal/strictjson"
)

// leastStall is the minimum time after which a call in progress counts as stalled. If handshakes
// are slow, the time is four times the duration of the handshake. Other calls no longer wait for a
// stalled call, so one request that hangs does not hold up the rest. Calls always wait while a
// connection is being made, because a provider that is too busy for one connection is too busy for
// several.
const leastStall = 500 * time.Millisecond

// Calls sends several calls to one provider over a single connection, one at a time. The calls
// share one TLS handshake and one device proof. If the connection breaks, the current call fails,
// and the next one opens a new connection. If the provider cannot be reached, all calls fail at
// once.
type Calls struct {
	client *Client
	turn   chan turn // contains one element unless a call is in progress
	stalls atomic.Pointer[time.Time]
}

// turn holds the connection that the calls share, and is passed from call to call. The session is
// nil before the first connection and after the connection broke.
type turn struct {
	session *session
	took    time.Duration // time that it took to connect
	failed  error         // error of the last attempt to connect
}

// Calls prepares several calls to the provider that share one connection. The caller must close the
// result.
func (c *Client) Calls() *Calls {
	p := &Calls{client: c, turn: make(chan turn, 1)}
	p.turn <- turn{}
	return p
}

// Close closes the connection that the calls share. No call may be in progress.
func (p *Calls) Close() {
	if t := <-p.turn; t.session != nil {
		t.session.close()
	}
}

// Enrol requests the first SVID of the client's node. It must be the first call. The body of the
// request is an encoded CertBody. Enrol fetches a nonce and sends the request over the same
// connection, because the proof by HostKey is valid only on that connection.
func (p *Calls) Enrol(ctx context.Context, r Request) (Answer, error) {
	var body CertBody
	if err := strictjson.Decode(r.Body, &body); err != nil {
		return Answer{}, Errorf(CodeMalformed, "need %s: body: %v", r.Need, err)
	}
	block, _ := pem.Decode([]byte(body.CSR))
	if block == nil {
		return Answer{}, Errorf(CodeMalformed, "need %s: csr is not PEM", r.Need)
	}
	s, err := p.client.connect(ctx, nil)
	if err != nil {
		return Answer{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(p.client.Timeout, timeout))
	defer cancel()
	a, err := s.enrol(ctx, r, block.Bytes)
	if err != nil || s.spent {
		s.close()
		return a, err
	}
	<-p.turn
	p.put(turn{session: s})
	return a, nil
}

// Enrolled makes the following calls use the SVID that Enrol has returned. They continue on the
// same connection, because the provider remembers which certificate it has issued there, and the
// device proof shows that the caller is still the same host.
func (p *Calls) Enrolled(svid *tls.Certificate) error {
	t := <-p.turn
	defer p.put(t)
	p.client.SVID = svid
	if t.session == nil {
		return nil
	}
	var err error
	t.session.proof, err = t.session.proveDevice()
	return err
}

// Do sends a request to a path of the provider, such as the result of Path, and returns the answer.
func (p *Calls) Do(ctx context.Context, path string, r Request) (a Answer, err error) {
	err = p.call(ctx, func(ctx context.Context, s *session) error {
		r.Device = s.proof
		a, err = s.request(ctx, path, r)
		return err
	})
	return a, err
}

// Artifact fetches the documents of the client's node. The client's Tag tells the provider which
// documents the node has. If the provider has the same ones, the result contains no documents, and
// NotModified is set.
func (p *Calls) Artifact(ctx context.Context) (a Artifact, err error) {
	err = p.call(ctx, func(ctx context.Context, s *session) error {
		path := fmt.Sprintf("%s%s?serial=%d", PathArtifact, p.client.Node.Name(), p.client.Serial)
		header := s.device()
		if p.client.Tag != "" {
			header.Set(HeaderHas, p.client.Tag)
		}
		return s.call(ctx, http.MethodGet, path, header, nil, &a)
	})
	return a, err
}

// watchTimeout is the time limit of a watch. It is longer than the time after which every provider
// answers a watch.
const watchTimeout = 10 * time.Minute

// Watch waits until the provider has documents for the client's node that are newer than those with
// the client's Tag, and returns them. The caller passes the Artifact.Revision of the previous
// answer, or zero. If there are no newer documents, Watch returns a result without documents after
// some minutes.
func (p *Calls) Watch(ctx context.Context, from int64) (a Artifact, err error) {
	err = p.within(ctx, watchTimeout, func(ctx context.Context, s *session) error {
		header := s.device()
		header.Set(HeaderHas, p.client.Tag)
		return s.call(ctx, http.MethodGet, fmt.Sprintf("%s?from=%d&serial=%d", PathWatch, from, p.client.Serial), header, nil, &a)
	})
	return a, err
}

// Report sends an encoded hostreport.Report of the client's node to the provider.
func (p *Calls) Report(ctx context.Context, report []byte) (r Reported, err error) {
	err = p.call(ctx, func(ctx context.Context, s *session) error {
		header := s.device()
		header.Set("Content-Type", "application/json")
		return s.call(ctx, http.MethodPost, PathReport, header, bytes.NewReader(report), &r)
	})
	return r, err
}

// call waits for the turn of this call, and then runs do on the shared connection.
func (p *Calls) call(ctx context.Context, do func(context.Context, *session) error) error {
	return p.within(ctx, cmp.Or(p.client.Timeout, timeout), do)
}

// within waits for the turn of this call and runs do, like call. The argument most is the maximum
// duration of the call.
func (p *Calls) within(ctx context.Context, most time.Duration, do func(context.Context, *session) error) error {
	if p.client.SVID == nil {
		return Errorf(CodeUntrusted, "%s has no SVID yet: it must enrol first", p.client.Node)
	}
	ctx, cancel := context.WithTimeout(ctx, connectTimeout+cmp.Or(p.client.Patience, handshakeTimeout)+most)
	defer cancel()
	t, ok := p.wait(ctx)
	if !ok {
		return AsError(ctx.Err())
	}
	if err := ctx.Err(); err != nil {
		p.put(t)
		return AsError(err)
	}
	if t.session == nil && t.failed == nil {
		begun := time.Now()
		t.session, t.failed = p.client.connect(ctx, p.client.SVID)
		t.took = time.Since(begun)
	}
	if t.failed != nil {
		p.put(t)
		return t.failed
	}
	p.stallAfter(max(leastStall, 4*t.took))
	ctx, cancel = context.WithTimeout(ctx, most)
	defer cancel()
	err := do(ctx, t.session)
	if err != nil && t.session.enrolled && t.session.refuses(err) && ctx.Err() == nil {
		t.session.close()
		if t.session, t.failed = p.client.connect(ctx, p.client.SVID); t.failed != nil {
			p.put(t)
			return t.failed
		}
		err = do(ctx, t.session)
	}
	if t.session.spent {
		t.session.close()
		t.session = nil
	}
	p.put(t)
	if err == nil {
		return nil
	}
	e := *AsError(err)
	e.Reached = true
	return &e
}

// wait waits until no other call uses the connection, and returns the turn. If the call that uses
// the connection is stalled, wait returns a turn without a connection. It returns false if ctx ends
// first.
func (p *Calls) wait(ctx context.Context) (turn, bool) {
	poll := time.NewTimer(leastStall)
	defer poll.Stop()
	for {
		select {
		case t := <-p.turn:
			return t, true
		case now := <-poll.C:
			next := leastStall
			if at := p.stalls.Load(); at != nil {
				if !now.Before(*at) {
					return turn{}, true
				}
				next = min(next, at.Sub(now))
			}
			poll.Reset(next)
		case <-ctx.Done():
			return turn{}, false
		}
	}
}

func (p *Calls) stallAfter(d time.Duration) {
	at := time.Now().Add(d)
	p.stalls.Store(&at)
}

// put passes the turn to the next call. If this call was stalled, and another call has opened a new
// connection since, put closes the old connection.
func (p *Calls) put(t turn) {
	p.stalls.Store(nil)
	select {
	case p.turn <- t:
	default:
		if t.session != nil {
			t.session.close()
		}
	}
}
