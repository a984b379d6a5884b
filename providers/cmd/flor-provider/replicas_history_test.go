package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/internal/signers"
	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/internal/trust"
	"github.com/florete/florete/nix/operator/revocation"
	"github.com/florete/florete/providers/archive"
	"github.com/florete/florete/providers/store"
	"github.com/florete/florete/tests/kit"
)

// act is an entry of a history: an operator's act on the host, or a request of the host.
type act string

const (
	suspend act = "suspend"
	resume  act = "resume"
	ask     act = "ask"
)

// suspension is the host as one provider in one place would have it. The state is whether it is
// suspended; the output of a request is whether it was granted. A replica that was cut off may
// refuse for a while after a resumption that it does not know of, but never grant. A request
// without an answer says nothing, and is in no history.
var suspension = porcupine.Model{
	Init: func() any { return false },
	Step: func(state, input, output any) (bool, any) {
		switch input.(act) {
		case suspend:
			return true, true
		case resume:
			return true, false
		}
		return !output.(bool) || !state.(bool), state
	},
}

// lasts returns the time for which random operations go on: $FLORETE_LONG, or what a suite has time for.
func lasts(t *testing.T) time.Duration {
	t.Helper()
	written := os.Getenv("FLORETE_LONG")
	if written == "" {
		return 20 * time.Second
	}
	d, err := time.ParseDuration(written)
	if err != nil {
		t.Fatalf("FLORETE_LONG: %v", err)
	}
	return d
}

// TestHistory checks that three replicas of a provider grant the same requests as a single provider
// would. Meanwhile replicas and members of their store die, hang or lose their connections at any
// moment. The test lasts for the time in the variable FLORETE_LONG, for example FLORETE_LONG=1h. It
// checks these conditions:
//
//   - While the suspension of a host is in force, no request of that host is granted.
//   - A request has the same answer whichever replica gives it, and however often it is sent.
//   - Each granted request has exactly one row in the audit log.
//   - If a request or an operator's action is interrupted, the error does not blame the caller.
//   - If the outcome of an operator's action is unknown, the action is accepted when it is
//     repeated.
func TestHistory(t *testing.T) {
	if testing.Short() {
		t.Skip("left out by -short: it takes long")
	}
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	c := newReplicas(t, 3, "cert")
	cuts := map[string]*cut{}
	c.change = func(p *document.Policy) {
		shared := *p.Store
		shared.Endpoints = nil
		for _, e := range c.etcd.Endpoints() {
			shared.Endpoints = append(shared.Endpoints, cuts[p.Host].to(t, e))
		}
		p.Store = &shared
		p.Kinds["cert"] = fmt.Appendf(nil, `{"lifetime":%.0f}`, trust.MaxLifetime.Seconds()) // the host keeps the SVID of its enrolment
	}
	for _, name := range []string{"a", "b", "d"} {
		cuts[name] = &cut{}
		c.add(name)
	}
	c.deploy(c.all...)
	for _, r := range c.all {
		r.run = start(t, r.settings)
	}
	c.enrol(c.all[0], kit.NewKey())
	ursula := kit.ID("node/ursula")

	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	began := time.Now()
	var mu sync.Mutex
	var history []porcupine.Operation
	add := func(client int, in act, call time.Time, granted bool) {
		mu.Lock()
		defer mu.Unlock()
		history = append(history, porcupine.Operation{ClientId: client, Input: in, Call: int64(call.Sub(began)), Output: granted, Return: int64(time.Since(began))})
	}
	var work sync.WaitGroup
	var answered, refused, lost atomic.Int64
	var granted sync.Map // by idempotency key
	enough := time.Now().Add(lasts(t))
	work.Go(func() { // on a busy machine it takes longer until there is something to look at
		defer cancel()
		for ctx.Err() == nil && !t.Failed() && (time.Now().Before(enough) || answered.Load() < 30 || refused.Load() < 30) {
			time.Sleep(100 * time.Millisecond)
		}
	})
	for n := range 6 {
		work.Go(func() {
			random := rand.New(rand.NewPCG(seed, uint64(n)))
			var need hostapi.Request
			var first string
			// A connection of before a replica hung has its requests decided as soon as that goes on.
			open := map[*replica]*hostapi.Calls{}
			for ctx.Err() == nil {
				if first == "" || random.IntN(2) == 0 {
					id := fmt.Sprintf("s%d", n)
					need, first = request("cert-service-"+id, kit.ID("service/"+id), kit.NewKey()), ""
				}
				r := c.all[random.IntN(len(c.all))]
				if open[r] == nil {
					open[r] = c.client(r, "cert").Calls()
				}
				call := time.Now()
				within, done := context.WithTimeout(ctx, 5*time.Second)
				a, err := open[r].Do(within, hostapi.Path("cert"), need)
				done()
				if err != nil || random.IntN(10) == 0 {
					open[r].Close()
					open[r] = nil
				}
				switch {
				case err == nil && first != "" && a.Values["svid"] != first:
					t.Errorf("need %s: two answers to one request", need.Need)
					return
				case err == nil:
					first = a.Values["svid"]
					key, err := need.Key(ursula)
					if err != nil {
						t.Error(err)
					}
					granted.Store(key, true)
					answered.Add(1)
					add(n, ask, call, true)
				case hostapi.AsError(err).Code == hostapi.CodeRevoked.Name:
					refused.Add(1)
					add(n, ask, call, false)
				case ctx.Err() == nil && hostapi.AsError(err).Kind != hostapi.Transient:
					t.Errorf("a request of the host's own: got %v, want what may pass, or %s", err, hostapi.CodeRevoked.Name)
					return
				default:
					lost.Add(1)
				}
				time.Sleep(time.Duration(random.IntN(20)) * time.Millisecond)
			}
			for _, pass := range open {
				if pass != nil {
					pass.Close()
				}
			}
		})
	}
	work.Go(func() {
		random := rand.New(rand.NewPCG(seed, 100))
		lists := newLists(c)
		lists.interrupt = random
		for i := 0; ctx.Err() == nil; i++ {
			in, do := suspend, revocation.Suspend
			if i%2 == 1 {
				in, do = resume, revocation.Unsuspend
			}
			call := time.Now()
			lists.change(do, ursula)
			add(100, in, call, false)
			time.Sleep(time.Duration(random.IntN(1500)) * time.Millisecond)
		}
	})
	harm(ctx, c, cuts, rand.New(rand.NewPCG(seed, 101)), t)
	work.Wait()
	t.Logf("%d answers, %d refusals, %d requests without either", answered.Load(), refused.Load(), lost.Load())
	if got := porcupine.CheckOperationsTimeout(suspension, history, 5*time.Minute); got != porcupine.Ok {
		t.Errorf("the history of %d acts: got %s, want what one provider would do", len(history), got)
	}
	rows := c.decided(c.all[0], "cert")
	for key := range granted.Range {
		if rows[key.(string)] == 0 {
			t.Errorf("request %s was granted, and has no row", key)
		}
	}
}

// harm has replicas and members of their store die, hang, and lose each other, until ctx ends; then
// all are well again.
func harm(ctx context.Context, c *replicas, cuts map[string]*cut, random *rand.Rand, t *testing.T) {
	pause := func(most int) { time.Sleep(time.Duration(random.IntN(most)) * time.Millisecond) }
	for ctx.Err() == nil {
		pause(1000)
		r, m := c.all[random.IntN(len(c.all))], c.etcd.Members[random.IntN(len(c.etcd.Members))]
		switch random.IntN(6) {
		case 0:
			r.run.kill(t)
			pause(500)
			r.run = start(t, r.settings)
		case 1:
			c.must(r.run.Process.Signal(syscall.SIGSTOP))
			pause(3000)
			c.must(r.run.Process.Signal(syscall.SIGCONT))
		case 2:
			cuts[r.name].down.Store(true)
			pause(5000)
			cuts[r.name].down.Store(false)
		case 3:
			m.Kill()
			pause(2000)
			m.Start()
		case 4:
			m.Stop()
			pause(2000)
			m.Continue()
		case 5: // no majority
			for _, m := range c.etcd.Members[1:] {
				m.Stop()
			}
			pause(3000)
			for _, m := range c.etcd.Members[1:] {
				m.Continue()
			}
		}
	}
}

// cut is the network between a replica and its store. While it is down no byte goes either way,
// and no connection ends.
type cut struct{ down atomic.Bool }

// to is an address at which the replica reaches a member of its store.
func (c *cut) to(t *testing.T, endpoint string) string {
	t.Helper()
	member := endpoint[len("https://"):]
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			near, err := l.Accept()
			if err != nil {
				return
			}
			far, err := net.Dial("tcp", member)
			if err != nil {
				near.Close()
				continue
			}
			go c.carry(near, far)
			go c.carry(far, near)
		}
	}()
	return "https://" + l.Addr().String()
}

func (c *cut) carry(from, to net.Conn) {
	defer from.Close()
	defer to.Close()
	_, _ = io.Copy(to, readerFunc(func(b []byte) (int, error) {
		n, err := from.Read(b)
		for c.down.Load() {
			time.Sleep(10 * time.Millisecond)
		}
		return n, err
	}))
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(b []byte) (int, error) { return f(b) }

// lists are the revocation lists that an operator publishes in the store of replicas.
type lists struct {
	c         *replicas
	published archive.Archive
	number    int64
	last      *trust.Revocations
	interrupt *rand.Rand // cuts attempts short, perhaps after they were made; nil for none
}

func newLists(c *replicas) *lists {
	return &lists{c: c, published: archive.Archive{Store: c.etcd.Tree(c.t, kit.Domain+"/config")}}
}

// change publishes a list that does to a host what do does, and returns once that is acknowledged.
// The certificates of that host stay good by themselves: only its suspension refuses them.
func (l *lists) change(do func(*trust.Revocations, spiffe.ID) error, host spiffe.ID) {
	l.c.t.Helper()
	l.number++
	list := revocation.Next(l.last, "demo", time.Now().Add(-24*time.Hour), revocation.Lifetime)
	list.Number = l.number
	l.c.must(do(list, host))
	signed, err := revocation.Sign(list, signing)
	l.c.must(err)
	terms := archive.ListTerms{Cluster: "demo", Signers: signers.Any(signing.ToPublicKey().String())}
	for again := 0; ; again++ {
		within, done := context.WithTimeout(l.c.t.Context(), time.Minute)
		if l.interrupt != nil && again < 5 {
			done()
			within, done = context.WithTimeout(l.c.t.Context(), time.Duration(1+l.interrupt.IntN(20<<again))*time.Millisecond)
		}
		_, _, err := l.published.SetRevocations(within, signed, terms)
		done()
		if err == nil {
			break
		}
		if !errors.Is(err, store.ErrUnavailable) && !errors.Is(err, context.DeadlineExceeded) {
			l.c.t.Fatalf("list %d: %v, want that the store does not answer", l.number, err)
		}
	}
	l.last, err = signed.Open()
	l.c.must(err)
}
