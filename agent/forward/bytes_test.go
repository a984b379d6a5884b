package forward_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/tests/kit"
	"github.com/florete/florete/tests/kit/agenttest"
)

// filled returns random bytes. It makes them at once, because the race detector watches a loop over
// them.
func filled(size int, seed uint64) []byte {
	b := make([]byte, size)
	rand.NewChaCha8([32]byte(binary.LittleEndian.AppendUint64(make([]byte, 24), seed))).Read(b)
	return b
}

// hashing starts a service that reads until the caller ends its side. It answers with the hash of
// the bytes it got, the requested number of bytes, and their hash.
func hashing(t *testing.T) string {
	return agenttest.Upstream(t, func(c *net.TCPConn) {
		defer c.Close()
		got := sha256.New()
		var head [4]byte
		if _, err := io.ReadFull(io.TeeReader(c, got), head[:]); err != nil {
			return
		}
		if _, err := io.Copy(got, c); err != nil {
			return
		}
		c.Write(got.Sum(nil))
		b := filled(int(head[0])<<16|int(head[1])<<8|int(head[2]), uint64(head[3]))
		c.Write(b)
		sum := sha256.Sum256(b)
		c.Write(sum[:])
	})
}

// exchangeHashes sends random bytes in random pieces, and compares hashes in both directions. If
// abandoned, it resets the connection before the end.
func exchangeHashes(addr string, random *rand.Rand, abandoned bool) error {
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		return err
	}
	defer conn.Close()
	c := conn.(*net.TCPConn)
	c.SetDeadline(time.Now().Add(4 * kit.Patience)) // megabytes, in turns with all others
	size := 4 + random.IntN(1<<random.IntN(21))
	b := filled(size, random.Uint64())
	b[0] &= 0x07 // at most 512 KiB comes back
	want := int(b[0])<<16 | int(b[1])<<8 | int(b[2])
	sent := sha256.Sum256(b)
	for len(b) > 0 {
		n := min(len(b), 1+random.IntN(100<<10))
		if _, err := c.Write(b[:n]); err != nil {
			return err
		}
		b = b[n:]
		if abandoned && random.IntN(3) == 0 {
			return c.SetLinger(0)
		}
	}
	if err := c.CloseWrite(); err != nil {
		return err
	}
	answer := make([]byte, 2*sha256.Size+want+1) // one more, to see the end
	n, err := io.ReadFull(c, answer)
	if !errors.Is(err, io.ErrUnexpectedEOF) || n != len(answer)-1 {
		return fmt.Errorf("%d bytes came back for %d, want %d and the end: %w", n, size, len(answer)-1, err)
	}
	answer = answer[:n]
	body := answer[sha256.Size : len(answer)-sha256.Size]
	sum := sha256.Sum256(body)
	if !bytes.Equal(answer[:sha256.Size], sent[:]) || !bytes.Equal(answer[len(answer)-sha256.Size:], sum[:]) {
		return errors.New("hashes differ")
	}
	return nil
}

// TestBytesUnderLoad checks that all bytes arrive although other connections are reset, over either
// transport.
func TestBytesUnderLoad(t *testing.T) {
	for _, over := range []document.Transport{document.OverQUIC, document.OverTCP} {
		t.Run(string(over), func(t *testing.T) {
			agenttest.Transport = over
			defer func() { agenttest.Transport = document.AnyTransport }()
			c := newCluster(t, hashing(t))
			c.start(t)
			var workers sync.WaitGroup
			var whole atomic.Int64
			seed := rand.Uint64()
			for w := range 24 {
				workers.Go(func() {
					random := rand.New(rand.NewPCG(seed, uint64(w)))
					for range 8 {
						abandoned := random.IntN(4) == 0
						if err := exchangeHashes(c.Local, random, abandoned); err != nil {
							t.Errorf("seed %d, worker %d: %v", seed, w, err)
							return
						}
						if !abandoned {
							whole.Add(1)
						}
					}
				})
			}
			workers.Wait()
			if whole.Load() < 24 {
				t.Errorf("only %d were whole", whole.Load())
			}
			for _, row := range report(t, c.Laptop).PeerConnections {
				if row.Transport != over {
					t.Errorf("a connection over %s", row.Transport)
				}
			}
			kit.Eventually(t, "no stream to be left", func() bool {
				r := report(t, c.Ursula)
				n := r.Connections
				for _, row := range r.PeerConnections {
					n += row.Streams
				}
				return n == 0
			})
		})
	}
}
