package server

import (
	"context"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/florete/florete/internal/conns"
	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/internal/hostreport"
	"github.com/florete/florete/internal/strictjson"
	"github.com/florete/florete/internal/trust"
)

// Joiner is a Kind at which devices request to be admitted, at POST /<kind>/join: they have
// neither an SVID nor a key in the policy.
type Joiner interface {
	// Join decides on a request whose signatures verify, of a device that the policy lets join
	// as c.Caller: HostKey is its key. What it decides is in Decision, but for the Answer. It is
	// called again when a condition fails. from is the network address of the caller.
	Join(ctx context.Context, c Call, j hostapi.Join, from string) (hostapi.Joined, Decision, error)
}

// What strangers may get wrong: so many tokens of one network in each interval, for so many
// networks, all others together like one.
const (
	guessEvery    = time.Minute
	guessesOfOne  = 10
	guessNetworks = 1024
)

// guesses counts refused tokens, by network.
type guesses struct {
	mu    sync.Mutex
	since time.Time
	of    map[string]int
}

// at is the network that counts for a peer; g.mu is held.
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

// refuse is the error for who guessed too often.
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

// join answers a device that requests to be admitted.
func (s *Server) join(w http.ResponseWriter, r *http.Request, k Joiner) {
	a := request{Server: s, row: Row{From: r.RemoteAddr, Kind: s.Kind.name, Enrolment: true}}
	var j hostapi.Join
	err := a.guesses.refuse(r.RemoteAddr, time.Now())
	if err == nil {
		err = a.identify(r.Context(), r.TLS, true)
	}
	if err == nil && a.svid != nil {
		err = hostapi.Errorf(hostapi.CodeMalformed, "a join request on a connection with the certificate of %s: it has joined", a.caller)
	}
	if err == nil {
		err = receiveJoin(http.MaxBytesReader(w, r.Body, hostapi.MaxJoin), &j)
		a.row.Caller = j.Node.String()
	}
	a.reply(w, r, func() (any, change, error) {
		if err != nil {
			return nil, change{}, err
		}
		answer, c, err := a.decideJoin(r.Context(), k, j)
		if codeOf(err) == hostapi.CodeToken.Name {
			a.guesses.count(a.row.From, a.row.Time)
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

// decideJoin decides on a join request.
func (a *request) decideJoin(ctx context.Context, k Joiner, j hostapi.Join) (any, change, error) {
	f := a.Policies.now.Load()
	if key, ok := f.hostKeys[j.Node]; !ok || key != nil {
		return nil, change{}, hostapi.Errorf(hostapi.CodeJoinTransient,
			"%s: the policy here lets no device join as it: declare the host without sshHostKey, and publish that to this provider", j.Node)
	}
	key, err := j.Verify(f.self.ID, a.binding)
	if err != nil {
		return nil, change{}, hostapi.Errorf(hostapi.CodeUntrusted, "join request of %s: %v", j.Node, err)
	}
	call := Call{Caller: j.Node, HostKey: key, Policy: f.Policy, Serial: f.serial, Revoked: f.roots.Revocations(), Now: a.row.Time}
	answer, d, err := k.Join(ctx, call, j, a.row.From)
	if err != nil {
		return nil, change{}, err
	}
	a.row.Code, a.row.Detail = hostapi.CodeJoin.Name, d.Detail
	c := change{unrecorded: len(d.Then) == 0} // it waits, and asks again
	c.add(d)
	if answer.State == hostapi.JoinRevoked {
		c.refusal, c.unrecorded = hostapi.Errorf(hostapi.CodeRevoked, "join request of %s: %s", j.Node, answer.Message), false
	}
	return answer, c, nil
}

// enrolKey is the key that proves a node at enrolment, and when it must have enrolled with it
// for the first time; nil for a node that the policy does not have.
func (f *compiledPolicy) enrolKey(p *hostapi.Proof) (key ssh.PublicKey, until time.Time, err error) {
	key, ok := f.hostKeys[p.Node]
	if !ok || key != nil {
		return key, until, nil
	}
	if p.Admission == nil {
		return nil, until, hostapi.Errorf(hostapi.CodeJoin, "enrolment of %s: it has no SSH host key in the policy, and no admission: flor join -", p.Node)
	}
	admitted, until, err := p.Admission.Verify(f.Cluster, p.Node, f.Trust.SigningKeys)
	if err == nil {
		key, err = hostapi.ParseHostKey(admitted.Key)
	}
	if err != nil {
		return nil, until, hostapi.Errorf(hostapi.CodeJoin, "enrolment of %s: %v: flor join -", p.Node, err)
	}
	return key, until, nil
}

// deviceKey is the key of a node that joined, by which it signed a connection: the one that its
// SVID was issued to.
func (a *request) deviceKey() (ssh.PublicKey, error) {
	to := trust.GivenToDevice(a.svid)
	if to == "" {
		return nil, hostapi.Errorf(hostapi.CodeDeviceKey, "certificate of %s: issued to no device key, and the policy has no SSH host key of it any more: flor join -", a.caller)
	}
	if a.request.Device == "" {
		return nil, hostapi.Errorf(hostapi.CodeDeviceKey, "no device proof beside the certificate of %s: want one by its device key %s", a.caller, to)
	}
	key, err := hostapi.DeviceProofKey(a.request.Device)
	if err == nil && ssh.FingerprintSHA256(key) != to {
		err = hostapi.Errorf(hostapi.CodeDeviceKey, "signed by key %s", ssh.FingerprintSHA256(key))
	}
	if err != nil {
		return nil, hostapi.Errorf(hostapi.CodeDeviceKey, "%s: %s: want a proof by its device key %s", a.caller, strings.TrimSpace(hostapi.AsError(err).Message), to)
	}
	return key, nil
}
