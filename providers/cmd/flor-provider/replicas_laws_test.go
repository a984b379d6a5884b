package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/florete/florete"
	"github.com/florete/florete/providers/api"
	"github.com/florete/florete/providers/archive"
	"github.com/florete/florete/providers/revocation"
	"github.com/florete/florete/providers/store"
	"github.com/florete/florete/tests/kit"
)

// answered is a request that one replica answered, or not.
type answered struct {
	at           string
	key          string
	begun, ended time.Time
	err          error
}

// TestReplicaLaws holds what must hold of replicas whatever is stopped, killed or cut off, in an
// order that a seed decides. FLORETE_SEEDS is how many seeds are run, one unless it is set.
//
//	what begins after a revocation is acknowledged, and ends before its end is begun, is not granted
//	no request and no act of an operator that was interrupted is called a mistake of its caller
//	an act whose outcome is unknown is accepted when it is repeated
//	what was granted has its row in the audit log
func TestReplicaLaws(t *testing.T) {
	seeds, err := strconv.ParseUint(os.Getenv("FLORETE_SEEDS"), 10, 32)
	if err != nil {
		seeds = 1
	}
	for seed := range seeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { replicaLaws(t, rand.New(rand.NewPCG(seed, 28))) })
	}
}

func replicaLaws(t *testing.T, r *rand.Rand) {
	c := newReplicas(t, 3, "cert")
	a, b := c.add("a"), c.add("b")
	c.deploy(a, b)
	for _, p := range c.all {
		p.run = start(t, p.settings)
	}
	c.enrol(a, kit.NewKey())
	c.ask(b, "cert", request("cert-service-s1", kit.ID("service/s1"), kit.NewKey()))

	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var one sync.Mutex
	var all []answered
	var askers sync.WaitGroup
	// ask makes a request over a connection, and keeps how it ended.
	ask := func(p *replica, over *api.Pass) error {
		q := request("cert-service-s1", kit.ID("service/s1"), kit.NewKey())
		key, err := q.Key(kit.ID("node/ursula"))
		if err != nil {
			t.Error(err)
		}
		is := answered{at: p.name, key: key, begun: time.Now()}
		within, cancel := context.WithTimeout(ctx, 8*time.Second)
		defer cancel()
		_, is.err = over.Do(within, api.Path("cert"), q)
		is.ended = time.Now()
		one.Lock()
		defer one.Unlock()
		all = append(all, is)
		return is.err
	}
	for _, p := range []*replica{a, a, b, b} {
		askers.Go(func() {
			for ctx.Err() == nil {
				over := c.client(p, "cert").Pass()
				if ask(p, over) != nil {
					time.Sleep(20 * time.Millisecond)
				}
				over.Close()
			}
		})
	}

	published := archive.Archive{Store: c.etcd.Tree(t, kit.Domain+"/config")}
	terms := archive.ListTerms{Cluster: "demo", Keys: []string{signing.ToPublicKey().String()}}
	var last *florete.Revocations
	number, unknown := int64(0), 0
	// act makes an act of an operator, and repeats it while its outcome is not known.
	act := func(do func(*florete.Revocations, florete.ID) error) {
		number++
		list := revocation.Next(last, "demo", time.Now().Add(-24*time.Hour), revocation.Lifetime)
		list.Number = number
		c.must(do(list, kit.ID("node/ursula")))
		signed, err := revocation.Sign(list, signing)
		c.must(err)
		for end := time.Now().Add(2 * time.Minute); ; {
			// Some attempts are cut short, perhaps after they were made.
			within, cancel := context.WithTimeout(t.Context(), time.Duration(1+r.IntN(20))*time.Duration(1+unknown%50)*time.Millisecond)
			_, _, err = published.SetRevocations(within, signed, terms)
			cancel()
			if err == nil {
				break
			}
			unknown++
			if !errors.Is(err, store.ErrUnavailable) && !errors.Is(err, context.DeadlineExceeded) || time.Now().After(end) {
				t.Fatalf("list %d: %v, want that the store does not answer", number, err)
			}
		}
		last, err = signed.Open()
		c.must(err)
	}
	var revoked [][2]time.Time // from the acknowledgement to the beginning of its end
	for range 6 {
		// Connections of before: what is requested over them is decided as soon as a replica goes on.
		open := map[*replica][]*api.Pass{}
		for _, p := range c.all {
			for range 6 {
				over := c.client(p, "cert").Pass()
				_ = ask(p, over)
				open[p] = append(open[p], over)
			}
		}
		heal := func() {}
		switch m := c.etcd.Members[r.IntN(3)]; r.IntN(5) {
		case 0:
			p := c.all[r.IntN(2)]
			c.must(p.run.Process.Signal(syscall.SIGSTOP))
			heal = func() { c.must(p.run.Process.Signal(syscall.SIGCONT)) }
		case 1:
			p := c.all[r.IntN(2)]
			p.run.kill(t)
			heal = func() { p.run = start(t, p.settings) }
		case 2:
			m.Stop()
			heal = m.Continue
		case 3:
			m.Kill()
			heal = func() { m.Start() }
		case 4: // no majority, for a while
			other := c.etcd.Members[r.IntN(3)]
			m.Stop()
			other.Stop()
			after, healed := time.Duration(r.IntN(3000))*time.Millisecond, make(chan struct{})
			go func() {
				time.Sleep(after)
				m.Continue()
				other.Continue()
				close(healed)
			}()
			heal = func() { <-healed }
		}
		act(revocation.Suspend)
		from := time.Now()
		for p, all := range open {
			for _, over := range all {
				askers.Go(func() {
					defer over.Close()
					_ = ask(p, over)
				})
			}
		}
		time.Sleep(time.Duration(100+r.IntN(900)) * time.Millisecond)
		heal()
		time.Sleep(time.Duration(r.IntN(2000)) * time.Millisecond)
		revoked = append(revoked, [2]time.Time{from, time.Now()})
		act(revocation.Resume)
		time.Sleep(time.Duration(r.IntN(1000)) * time.Millisecond)
	}
	stop()
	askers.Wait()
	c.ask(a, "cert", request("cert-service-s1", kit.ID("service/s1"), kit.NewKey()))

	rows := c.decided(a, "cert")
	granted, during := 0, 0
	for _, is := range all {
		within := false
		for _, w := range revoked {
			within = within || is.begun.After(w[0]) && is.ended.Before(w[1])
		}
		switch {
		case is.err == nil && within:
			t.Errorf("replica %s granted a request of a revoked node that began at %s, after the revocation was acknowledged", is.at, is.begun.Format(time.StampMicro))
		case is.err == nil && rows[is.key] == 0:
			t.Errorf("replica %s granted request %s, which has no row in the audit log", is.at, is.key)
		case is.err == nil:
			granted++
		case within:
			during++
		}
		if is.err == nil {
			continue
		}
		if e := api.AsError(is.err); e.Kind == api.Invalid || e.Kind == api.Denied && e.Code != api.CodeRevoked {
			t.Errorf("replica %s: %v, want what may pass, or %s", is.at, is.err, api.CodeRevoked)
		}
	}
	t.Logf("%d requests, %d granted, %d refused while their node was revoked, %d acts repeated", len(all), granted, during, unknown)
	if granted == 0 || during == 0 {
		t.Error("the seed shows nothing")
	}
}
