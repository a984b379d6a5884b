package distribution

import (
	"context"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/florete/florete/internal/conns"
	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/internal/hostreport"
	"github.com/florete/florete/internal/strictjson"
	"github.com/florete/florete/providers/join"
	"github.com/florete/florete/providers/server"
)

// These constants limit guesses of join tokens. Wrong tokens are counted for each network in an
// interval. If there are too many networks, all further networks are counted as one.
const (
	guessEvery    = time.Minute
	guessesOfOne  = 10
	guessNetworks = 1024
)

// guesses counts the join tokens that were refused, for each network.
type guesses struct {
	mu    sync.Mutex
	since time.Time
	of    map[string]int
}

// at returns the network under which the guesses of a peer are counted. The caller must hold g.mu.
func (g *guesses) at(peer string, now time.Time) string {
	if now.Sub(g.since) >= guessEvery {
		g.since, g.of = now, map[string]int{}
	}
	network := conns.Prefix(peer).String()
	if _, ok := g.of[network]; !ok && len(g.of) >= guessNetworks {
		return ""
	}
	return network
}

// refuse returns an error if too many wrong tokens came from the peer's network.
func (g *guesses) refuse(peer string, now time.Time) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if n := g.at(peer, now); g.of[n] >= guessesOfOne {
		return hostapi.Errorf(hostapi.CodeBusy, "%d join tokens from this network were refused within a minute: request again later", guessesOfOne).After(guessEvery)
	}
	return nil
}

func (g *guesses) count(peer string, now time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.of[g.at(peer, now)]++
}

// join answers a device that asks to become a host of the cluster. The device has no SVID, and the
// policy does not have its key.
func (d *Distribution) join(w http.ResponseWriter, r *http.Request) {
	a := d.server.Request(r)
	a.Row.Enrolment = true
	var j hostapi.Join
	err := d.guesses.refuse(r.RemoteAddr, time.Now())
	if err == nil {
		err = a.Identify(r, true)
	}
	if err == nil && !a.Caller.IsZero() {
		err = hostapi.Errorf(hostapi.CodeMalformed, "a join request on a connection with the certificate of %s: it has joined", a.Caller)
	}
	if err == nil {
		err = receiveJoin(http.MaxBytesReader(w, r.Body, hostapi.MaxJoin), &j)
		a.Row.Caller = j.Node.String()
	}
	a.Reply(w, r, err, func() (any, server.Change, error) {
		answer, c, err := d.admit(r.Context(), a, j)
		if err != nil && hostapi.AsError(err).Code == hostapi.CodeToken.Name {
			d.guesses.count(a.Row.From, a.Row.Time)
		}
		return answer, c, err
	})
}

func receiveJoin(body io.Reader, j *hostapi.Join) error {
	b, err := io.ReadAll(body)
	if err == nil {
		err = strictjson.Decode(b, j)
	}
	if err == nil {
		err = strictjson.Decode(j.Facts, new(hostreport.Facts))
	}
	if err != nil {
		return hostapi.Errorf(hostapi.CodeMalformed, "join request: %v: want at most %d bytes", err, hostapi.MaxJoin)
	}
	return nil
}

// admit decides about a join request.
func (d *Distribution) admit(ctx context.Context, a *server.Request, j hostapi.Join) (any, server.Change, error) {
	call, err := a.Joining(j)
	if err != nil {
		return nil, server.Change{}, err
	}
	answer, decision, err := join.Receive(ctx, d.archive.Store, call, j, a.Row.From)
	if err != nil {
		return nil, server.Change{}, err
	}
	a.Row.Code, a.Row.Detail = hostapi.CodeJoin.Name, decision.Detail
	c := server.Change{Unrecorded: len(decision.Then) == 0} // no change: the device waits and asks again
	c.Add(decision)
	if answer.State == hostapi.JoinRevoked {
		c.Refusal, c.Unrecorded = hostapi.Errorf(hostapi.CodeRevoked, "join request of %s: %s", j.Node, answer.Message), false
	}
	return answer, c, nil
}
