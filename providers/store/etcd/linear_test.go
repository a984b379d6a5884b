package etcd_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/florete/florete/providers/store"
	"github.com/florete/florete/providers/store/etcd"
	"github.com/florete/florete/tests/kit"
	"github.com/florete/florete/tests/kit/etcdtest"
)

// operation is an entry of a history: a read, or a write that may depend on a revision.
type operation struct {
	key    string
	write  string // the value; empty for a read
	expect int64  // revision that a write depends on; -1 for none
}

// outcome is the result of an operation.
type outcome struct {
	value    string
	revision int64
	conflict bool
	unknown  bool // no answer: made or not
}

// register is a key; revision -1 is one that no answer has told.
type register struct {
	value    string
	revision int64
}

// model is a key of a store, which changes at once and in one order.
var model = porcupine.Model{
	Partition: func(history []porcupine.Operation) (parts [][]porcupine.Operation) {
		of := map[string][]porcupine.Operation{}
		for _, o := range history {
			of[o.Input.(operation).key] = append(of[o.Input.(operation).key], o)
		}
		for _, p := range of {
			parts = append(parts, p)
		}
		return parts
	},
	Init: func() any { return register{} },
	Step: func(state, input, output any) (bool, any) {
		was, in, out := state.(register), input.(operation), output.(outcome)
		matches := in.expect == -1 || was.revision == -1 || was.revision == in.expect
		switch {
		case in.write == "" && out.unknown:
			return true, was
		case in.write == "":
			return was.value == out.value && (was.revision == -1 || was.revision == out.revision), register{out.value, out.revision}
		case out.unknown && matches:
			return true, register{in.write, -1}
		case out.unknown:
			return true, was
		case out.conflict:
			return in.expect != -1 && (was.revision == -1 || was.revision != in.expect), was
		}
		return matches && out.revision > was.revision, register{in.write, out.revision}
	},
}

// history collects what clients did.
type history struct {
	mu    sync.Mutex
	began time.Time
	all   []porcupine.Operation
}

func (h *history) add(client int, in operation, call time.Time, out outcome) {
	o := porcupine.Operation{ClientId: client, Input: in, Call: int64(call.Sub(h.began)), Output: out, Return: int64(time.Since(h.began))}
	if out.unknown {
		o.Return = math.MaxInt64
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.all = append(h.all, o)
}

// TestLinearizable checks that concurrent clients see the results of a single store, and that
// nothing is created twice. Meanwhile members of etcd die, hang and return.
func TestLinearizable(t *testing.T) {
	if testing.Short() {
		t.Skip("left out by -short: it takes long")
	}
	const clients, keys, lasts, writes = 6, 3, 15 * time.Second, 100
	c := etcdtest.Start(t, 3)
	tree := "linear"
	s := c.Tree(t, tree)
	_, first, err := s.List(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	h := &history{began: time.Now()}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var work sync.WaitGroup
	var acknowledged sync.Map
	var made, lost atomic.Int64
	time.AfterFunc(lasts, func() { // on a busy machine it takes longer until there is something to look at
		_ = kit.Poll(ctx, func() error {
			if made.Load() < writes {
				return errors.ErrUnsupported
			}
			return nil
		})
		cancel()
	})
	for n := range clients {
		own := c.Tree(t, tree)
		work.Go(func() {
			random := rand.New(rand.NewPCG(uint64(n), 4711))
			for i := 0; ctx.Err() == nil; i++ {
				in := operation{key: fmt.Sprint("k", random.IntN(keys)), expect: -1}
				call := time.Now()
				e, out := read(ctx, own, in.key)
				h.add(n, in, call, out)
				if out.unknown || random.IntN(3) == 0 {
					continue
				}
				in.write = fmt.Sprintf("%d.%d", n, i)
				if random.IntN(2) == 0 {
					in.expect = e.Modified
				}
				call = time.Now()
				out = write(t, ctx, own, in)
				h.add(n, in, call, out)
				switch {
				case out.unknown:
					lost.Add(1)
				case !out.conflict:
					acknowledged.Store(in.write, true)
					made.Add(1)
				}
				time.Sleep(time.Duration(random.IntN(20)) * time.Millisecond)
			}
		})
	}
	faults(ctx, c)
	work.Wait()
	for _, m := range c.Members {
		m.Continue()
	}
	t.Logf("%d operations, %d writes made, %d without an answer", len(h.all), made.Load(), lost.Load())
	if made.Load() < writes {
		t.Errorf("%d writes were made, want %d", made.Load(), writes)
	}
	switch porcupine.CheckOperationsTimeout(model, h.all, kit.Patience) {
	case porcupine.Illegal:
		t.Error("the history is not linearizable")
	case porcupine.Unknown:
		t.Error("the history was not checked in time")
	}
	once(t, s, first, &acknowledged)
}

// once: all that was acknowledged was made, and nothing twice. The pair of keys that each
// write sets is never apart.
func once(t *testing.T, s *etcd.Store, first int64, acknowledged *sync.Map) {
	t.Helper()
	last, err := s.Commit(t.Context(), store.Txn{Then: []store.Op{store.Put("end", nil)}})
	if err != nil {
		t.Fatal(err)
	}
	seen, pair := map[string]int{}, map[int64]string{}
	for e, err := range s.Watch(t.Context(), "", first) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Modified == last {
			break
		}
		if e.Key != "pair" {
			seen[string(e.Value)]++
			pair[e.Modified] += string(e.Value)
		} else if pair[e.Modified] += "=" + string(e.Value); pair[e.Modified] != string(e.Value)+"="+string(e.Value) {
			t.Errorf("revision %d has half of a transaction: %s", e.Modified, pair[e.Modified])
		}
	}
	for value, n := range seen {
		if n > 1 {
			t.Errorf("the write of %s was made %d times", value, n)
		}
	}
	acknowledged.Range(func(value, _ any) bool {
		if seen[value.(string)] == 0 {
			t.Errorf("the write of %s was acknowledged and is lost", value)
		}
		return true
	})
}

func read(ctx context.Context, s store.Store, key string) (store.Entry, outcome) {
	e, err := s.Get(ctx, key)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return e, outcome{unknown: true}
	}
	return e, outcome{value: string(e.Value), revision: e.Modified}
}

func write(t *testing.T, ctx context.Context, s store.Store, in operation) outcome {
	txn := store.Txn{Then: []store.Op{store.Put(in.key, []byte(in.write)), store.Put("pair", []byte(in.write))}}
	if in.expect != -1 {
		txn.If = []store.Cond{{Key: in.key, Modified: in.expect}}
	}
	revision, err := s.Commit(ctx, txn)
	switch {
	case err == nil:
		return outcome{revision: revision}
	case errors.Is(err, store.ErrConflict):
		return outcome{conflict: true}
	case !errors.Is(err, store.ErrUnavailable) && ctx.Err() == nil:
		t.Errorf("write: %v", err)
	}
	return outcome{unknown: true}
}

// faults has members die, hang and come back until ctx ends: mostly the leader.
func faults(ctx context.Context, c *etcdtest.Cluster) {
	random := rand.New(rand.NewPCG(1, 2))
	for i := 0; ; i++ {
		select {
		case <-ctx.Done():
			return
		case <-time.After(time.Second):
		}
		m := c.Members[random.IntN(len(c.Members))]
		if random.IntN(3) > 0 {
			m = c.Leader()
		}
		if i%2 == 0 {
			m.Kill()
			time.Sleep(300 * time.Millisecond)
			m.Start()
		} else {
			m.Stop()
			time.Sleep(1500 * time.Millisecond)
			m.Continue()
		}
	}
}
