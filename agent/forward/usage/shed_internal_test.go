package usage

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quic-go/quic-go"

	"github.com/florete/florete/agent/forward/telemetry"
	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/tests/kit"
)

// pair returns a connection whose server end is in the table.
func pair(t *testing.T, table *Table, caller spiffe.ID, close func()) (client, server *quic.Conn, c *Conn) {
	t.Helper()
	config := &tls.Config{Certificates: []tls.Certificate{*kit.NewCA().Issue(kit.ID("service/outline"), time.Hour)}, NextProtos: []string{"test"}, InsecureSkipVerify: true}
	ln, err := quic.ListenAddr("127.0.0.1:0", config, &quic.Config{InitialConnectionReceiveWindow: 256 << 20, MaxConnectionReceiveWindow: 256 << 20})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close() })
	client, err = quic.DialAddr(t.Context(), ln.Addr().String(), config, nil)
	if err != nil {
		t.Fatal(err)
	}
	server, err = ln.Accept(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.CloseWithError(0, ""); server.CloseWithError(0, "") })
	c, remove := table.Add(Row{Direction: telemetry.In, Target: kit.ID("service/outline"), Caller: caller, Remote: server.RemoteAddr().String()}, OfQUIC(server), new(atomic.Int64), close)
	t.Cleanup(remove)
	return client, server, c
}

// stream returns both ends of a stream.
func stream(t *testing.T, client, server *quic.Conn, c *Conn) (from, to *quic.Stream) {
	t.Helper()
	from, err := client.OpenStreamSync(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := from.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	to, err = server.AcceptStream(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	c.Streams.Add(1)
	return from, to
}

// read reads as forwarders do.
func read(c *Conn, st *quic.Stream, each func([]byte)) {
	b := make([]byte, 64<<10)
	for {
		n, err := st.Read(b)
		c.Read.Add(int64(n))
		if each(b[:n]); err != nil {
			return
		}
	}
}

// TestEstimate checks that the estimate of unread bytes is zero for a connection whose data is
// read, whatever it carries, and that unread data is found.
func TestEstimate(t *testing.T) {
	if testing.Short() {
		t.Skip("left out by -short: it takes long")
	}
	bytes, messages := kit.Often(100<<20, 20<<20), kit.Often(20_000, 4000)
	for name, use := range map[string]func(t *testing.T, client, server *quic.Conn, c *Conn){
		"uploads": func(t *testing.T, client, server *quic.Conn, c *Conn) {
			from, to := stream(t, client, server, c)
			go func() {
				from.Write(make([]byte, bytes))
				from.Close()
			}()
			read(c, to, func([]byte) {})
		},
		"downloads": func(t *testing.T, client, server *quic.Conn, c *Conn) {
			from, to := stream(t, client, server, c)
			go func() {
				to.Write(make([]byte, bytes))
				to.Close()
			}()
			io.Copy(io.Discard, from)
		},
		"small messages": func(t *testing.T, client, server *quic.Conn, c *Conn) {
			from, to := stream(t, client, server, c)
			go read(c, to, func(b []byte) { to.Write(b) })
			for range messages {
				from.Write([]byte("message"))
				from.Read(make([]byte, 64))
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			var table Table
			client, server, c := pair(t, &table, kit.ID("user/alice"), nil)
			ctx, cancel := context.WithCancel(t.Context())
			stopped := make(chan struct{})
			go func() {
				defer close(stopped)
				for ctx.Err() == nil {
					time.Sleep(10 * time.Millisecond)
					table.estimate()
				}
			}()
			use(t, client, server, c)
			cancel()
			<-stopped
			table.estimate()
			if c.held >= negligible {
				t.Errorf("all was read, and %d bytes are held", c.held)
			}
			from, _ := stream(t, client, server, c)
			sent, err := from.Write(make([]byte, 400<<10)) // less than a stream's window
			if err != nil {
				t.Fatal(err)
			}
			kit.Succeeds(t, "what is not read to be held", func() error {
				if table.estimate(); c.held < int64(sent)/2 {
					return fmt.Errorf("%d bytes were not read, and %d are held", sent, c.held)
				}
				return nil
			})
			for range 200 { // and the estimate stays so
				table.estimate()
			}
			if c.held < int64(sent)/2 {
				t.Errorf("%d bytes were not read, and only %d are still held", sent, c.held)
			}
		})
	}
}

// TestTheHeaviestCaller checks that the caller that holds the most memory loses its connections,
// and nobody else.
func TestTheHeaviestCaller(t *testing.T) {
	var table Table
	closed := map[string]int{}
	for name, held := range map[string]int64{"alice 1": 3 << 20, "alice 2": 3 << 20, "bob": 5 << 20, "carol": 0} {
		id := kit.ID("user/" + name[:3])
		_, _, c := pair(t, &table, id, func() { closed[name]++ })
		c.held = held
	}
	if !table.close(held) || len(closed) != 2 || closed["alice 1"] != 1 || closed["alice 2"] != 1 {
		t.Errorf("closed %v, want both of alice", closed)
	}
	if !table.Shedding(kit.ID("user/ali")) || table.Shedding(kit.ID("user/bob")) {
		t.Error("want new connections of alice to be refused, and of nobody else")
	}
	var light Table
	_, _, c := pair(t, &light, kit.ID("user/alice"), func() { t.Error("closed") })
	if c.held = negligible - 1; light.close(held) {
		t.Error("who holds next to nothing was closed")
	}
}

// TestWaiting checks that streams that a peer opens and this side does not accept are counted.
func TestWaiting(t *testing.T) {
	var table Table
	client, _, c := pair(t, &table, kit.ID("user/alice"), nil)
	c.Waiting.Store(true)
	table.estimate()
	for range 50 {
		st, err := client.OpenStream()
		if err != nil {
			t.Fatal(err)
		}
		st.Write(make([]byte, 1000))
	}
	kit.Eventually(t, "what nobody accepts to be held", func() bool {
		table.estimate()
		return c.held >= 50*1000/2
	})
	c.Waiting.Store(false)
	if table.estimate(); c.held != 0 {
		t.Errorf("%d bytes are held without a stream", c.held)
	}
}

func TestGroup(t *testing.T) {
	for name, c := range map[string]struct {
		max, current string
		short        bool
	}{
		"room":      {"1073741824\n", "700000000\n", false},
		"short":     {"1073741824\n", "900000000\n", true},
		"unlimited": {"max\n", "900000000\n", false},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for file, content := range map[string]string{"memory.max": c.max, "memory.current": c.current} {
				if err := os.WriteFile(filepath.Join(dir, file), []byte(content), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if got := group(dir).short(); got != c.short {
				t.Errorf("short: %t, want %t", got, c.short)
			}
		})
	}
	if group("").short() || group(t.TempDir()).short() {
		t.Error("short without a control group")
	}
}
