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

// leastStall is the time after which one of several calls stalls, where four times what the handshake
// took is not longer. The others do not wait for it then, so a request that hangs holds up no other.
// They do wait for a connection: a provider that has no time for one has less for several.
const leastStall = 500 * time.Millisecond

// Calls are a number of calls that begin at about the same time. They share one connection
// to the provider, with one handshake and one device proof, and one after the other uses
// it. A connection that breaks fails one call, the next makes another; a provider that
// cannot be reached fails all of them at once.
type Calls struct {
	client *Client
	turn   chan turn // has one, unless a call is under way
	stalls atomic.Pointer[time.Time]
}

// turn is the connection of calls: nil until there is one, and after it broke.
type turn struct {
	session *session
	took    time.Duration // to connect
	failed  error         // to connect
}

// Calls begins some. Close ends it.
func (c *Client) Calls() *Calls {
	p := &Calls{client: c, turn: make(chan turn, 1)}
	p.turn <- turn{}
	return p
}

// Close closes the connection. No call may be under way.
func (p *Calls) Close() {
	if t := <-p.turn; t.session != nil {
		t.session.close()
	}
}

// Enrol requests the node's own SVID without having one. It is the first of its calls. Nonce
// and request travel on one connection, to which the proof by HostKey is bound. r.Body is a CertBody.
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

// Enrolled has the calls that follow Enrol make use of the SVID that it returned, over the same
// connection: the provider knows the certificate that it issued there, and the device proof shows
// that whoever enrolled goes on.
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

// Do sends a request and returns its answer.
func (p *Calls) Do(ctx context.Context, path string, r Request) (a Answer, err error) {
	err = p.call(ctx, func(ctx context.Context, s *session) error {
		r.Device = s.proof
		a, err = s.request(ctx, path, r)
		return err
	})
	return a, err
}

// Artifact fetches the documents of this node, unless they are those with the client's Tag.
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

// watchTimeout is longer than any provider leaves a watch without an answer.
const watchTimeout = 10 * time.Minute

// Watch waits until other documents than those with the client's Tag are in force for this
// node, since the answer that had a revision; zero for none. That there are none for now is
// an answer too, after minutes. Artifact.Revision is where the next watch goes on.
func (p *Calls) Watch(ctx context.Context, from int64) (a Artifact, err error) {
	err = p.within(ctx, watchTimeout, func(ctx context.Context, s *session) error {
		header := s.device()
		header.Set(HeaderHas, p.client.Tag)
		return s.call(ctx, http.MethodGet, fmt.Sprintf("%s?from=%d&serial=%d", PathWatch, from, p.client.Serial), header, nil, &a)
	})
	return a, err
}

// Report sends what the node reports of itself, a hostreport.Report.
func (p *Calls) Report(ctx context.Context, report []byte) (r Reported, err error) {
	err = p.call(ctx, func(ctx context.Context, s *session) error {
		header := s.device()
		header.Set("Content-Type", "application/json")
		return s.call(ctx, http.MethodPost, PathReport, header, bytes.NewReader(report), &r)
	})
	return r, err
}

// call runs one on the connection they share, when it is its turn.
func (p *Calls) call(ctx context.Context, do func(context.Context, *session) error) error {
	return p.within(ctx, cmp.Or(p.client.Timeout, timeout), do)
}

// within is call with a bound of its own.
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

// wait returns the turn, or one without a connection when the call that has it
// stalls; false when ctx ended.
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

// put ends a turn. A call that stalled finds that another took its place.
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
