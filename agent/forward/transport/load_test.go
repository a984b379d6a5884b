//go:build !race

package transport_test

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	mrand "math/rand/v2"
	"os"
	"runtime"
	"sync"
	"syscall"
	"testing"

	"github.com/florete/florete/agent/forward/transport"
	"github.com/florete/florete/agent/forward/usage"
	"github.com/florete/florete/agent/forward/wire"
	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostdir"
	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/tests/kit"
)

// hashed reads until the caller ends its side. It answers with the hash of the bytes it got, as
// many bytes as their first four request, and the hash of these.
func hashed(st wire.Stream) {
	got := sha256.New()
	var want [4]byte
	if _, err := io.ReadFull(io.TeeReader(st, got), want[:]); err != nil {
		return
	}
	if _, err := io.Copy(got, st); err != nil {
		return
	}
	st.Write(got.Sum(nil))
	b := make([]byte, binary.BigEndian.Uint32(want[:]))
	rand.Read(b)
	st.Write(b)
	sum := sha256.Sum256(b)
	st.Write(sum[:])
}

// hashes sends up to 64 KiB in pieces, and compares hashes in both directions. If abandoned, it
// resets the stream before the end.
func hashes(st wire.Stream, random *mrand.Rand, abandoned bool) error {
	b := make([]byte, 4+random.IntN(1<<random.IntN(17)))
	rand.Read(b)
	want := random.IntN(1 << random.IntN(17))
	binary.BigEndian.PutUint32(b, uint32(want))
	sent := sha256.Sum256(b)
	for len(b) > 0 {
		n := min(len(b), 1+random.IntN(8<<10))
		if _, err := st.Write(b[:n]); err != nil {
			return err
		}
		b = b[n:]
		if abandoned && random.IntN(2) == 0 {
			break
		}
	}
	if abandoned {
		transport.Reset(st, wire.Reset)
		return nil
	}
	if err := st.Close(); err != nil {
		return err
	}
	answer, err := io.ReadAll(st)
	if err != nil {
		return err
	}
	if len(answer) != 2*sha256.Size+want {
		return fmt.Errorf("%d bytes came back, want %d", len(answer), 2*sha256.Size+want)
	}
	sum := sha256.Sum256(answer[sha256.Size : len(answer)-sha256.Size])
	if !bytes.Equal(answer[:sha256.Size], sent[:]) || !bytes.Equal(answer[len(answer)-sha256.Size:], sum[:]) {
		return errors.New("hashes differ")
	}
	return nil
}

// TestTenThousand checks that of that many streams at once, of which a quarter is reset, all bytes
// of the others arrive, and that no goroutine, file or memory remains afterwards. Over TCP, where
// each has a handshake of its own, there are fewer except in the long run.
func TestTenThousand(t *testing.T) {
	callers := []spiffe.ID{alice, kit.ID("user/bob"), kit.ID("user/carol")} // each has 4,096 at most
	for _, over := range []document.Transport{document.OverQUIC, document.OverTCP} {
		t.Run(string(over), func(t *testing.T) {
			ca := kit.NewCA()
			e := newService(t, ca, "127.0.0.1", hashed)
			set := host(t, "laptop", ca, callers...)
			p, err := transport.NewPool(func() *hostdir.SVIDSet { return set }, &usage.Table{})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(p.Close)
			once := func(i int, open func()) error {
				r := route(t, outline, map[document.Transport]string{document.OverQUIC: e.quic, document.OverTCP: e.tcp}[over])
				r.Caller, r.Transport = callers[i%len(callers)], over
				st, err := p.Open(t.Context(), r, wire.TCP)
				if err != nil {
					open()
					return err
				}
				defer st.Release()
				err = st.Answer(t.Context())
				open()
				if err != nil {
					return err
				}
				return hashes(st, mrand.New(mrand.NewPCG(uint64(i), 0)), i%4 == 0)
			}
			for i := range 3 * len(callers) {
				if err := once(i, func() {}); err != nil {
					t.Fatal(err)
				}
			}
			before := measured(t)
			n := atOnce(t, over)
			var opening, open, streams sync.WaitGroup
			open.Add(n)
			room := make(chan struct{}, 16)
			failed := make(chan error, n)
			for i := range n {
				opening.Add(1)
				room <- struct{}{}
				streams.Go(func() {
					failed <- once(i, func() { <-room; opening.Done(); open.Done(); open.Wait() })
				})
			}
			opening.Wait()
			streams.Wait()
			close(failed)
			for err := range failed {
				if err != nil {
					t.Fatal(err)
				}
			}
			var after footprint
			kit.Succeeds(t, "no more than before", func() error { // connections over TCP wait a minute for another stream
				if after = measured(t); !after.within(before) {
					return fmt.Errorf("before %+v, after %+v", before, after)
				}
				return nil
			})
			t.Logf("%d streams; before %+v, after %+v", n, before, after)
		})
	}
}

// atOnce returns the number of streams, at most as many as the process may have files for.
func atOnce(t *testing.T, over document.Transport) int {
	all := 10_000
	if over == document.OverTCP {
		all = kit.Often(all, all/4)
	}
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	files := (int(limit.Cur) - 500) / 2 // both ends are here
	if over == document.OverTCP && files < all {
		t.Logf("%d streams alone: of %d files each takes two", files, limit.Cur)
		return files
	}
	return all
}

// footprint is the resource use of the process.
type footprint struct {
	goroutines, files int
	heap              uint64
}

func measured(t *testing.T) footprint {
	t.Helper()
	files, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return footprint{runtime.NumGoroutine(), len(files), m.HeapAlloc + m.StackInuse}
}

// within allows for memory that the runtime keeps for each former goroutine.
func (f footprint) within(before footprint) bool {
	return f.goroutines <= before.goroutines+8 && f.files <= before.files+8 && f.heap <= before.heap+32<<20
}
