package splice

import (
	"bytes"
	"crypto/tls"
	"io"
	"net"
	"runtime"
	"testing"
	"time"

	"github.com/quic-go/quic-go"

	"github.com/florete/florete/tests/kit"
)

// TestInterrupted checks that all bytes and the end pass even if a busy stream is treated as idle.
func TestInterrupted(t *testing.T) {
	near, far := streams(t)
	local, process := connections(t)
	s := &session{Pair: Pair{Local: local, Stream: near}}
	interrupt := s.interrupt()
	ended, stop := make(chan error), make(chan struct{})
	Start(t.Context(), s.Pair, func(err error) { ended <- err })
	go func() {
		for {
			select {
			case <-stop:
				return
			default:
				interrupt()
			}
		}
	}()
	want := bytes.Repeat([]byte("0123456789abcdef"), 1<<14)
	go func() {
		for part := range len(want) / 64 {
			far.Write(want[part*64:][:64])
			if part%16 == 0 {
				time.Sleep(10 * time.Microsecond)
			}
		}
		far.Close()
	}()
	got, err := io.ReadAll(process)
	close(stop)
	process.Close()
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("%d bytes and %v, want all %d", len(got), err, len(want))
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// TestWrittenTogether checks that concurrent writes of many processes are sent in few packets.
func TestWrittenTogether(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	const many = 32
	near, far := connected(t)
	processes := make([]net.Conn, many)
	for i := range processes {
		local, process := connections(t)
		st, err := near.OpenStreamSync(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		Start(t.Context(), Pair{Local: local, Stream: st}, func(error) {})
		processes[i] = process
	}
	streams := make([]*quic.Stream, many)
	exchange := func() (packets uint64) {
		before := near.ConnectionStats().PacketsSent
		for _, p := range processes {
			if _, err := p.Write(make([]byte, 10)); err != nil {
				t.Fatal(err)
			}
		}
		for i := range streams {
			if streams[i] == nil {
				st, err := far.AcceptStream(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				streams[i] = st
			}
			if _, err := io.ReadFull(streams[i], make([]byte, 10)); err != nil {
				t.Fatal(err)
			}
		}
		return near.ConnectionStats().PacketsSent - before
	}
	exchange()
	const rounds = 20
	var sent uint64
	for range rounds {
		sent += exchange()
	}
	if sent > rounds*many/2 {
		t.Errorf("%d packets for %d writes, want at most half as many", sent, rounds*many)
	}
}

// streams returns the two ends of a stream over QUIC.
func streams(t *testing.T) (near, far *quic.Stream) {
	t.Helper()
	accepted, dialled := connected(t)
	var err error
	if far, err = dialled.OpenStreamSync(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err = far.Write([]byte{1}); err != nil {
		t.Fatal(err)
	}
	if near, err = accepted.AcceptStream(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := near.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	return near, far
}

// connected returns the two ends of a connection over QUIC.
func connected(t *testing.T) (accepted, dialled *quic.Conn) {
	t.Helper()
	cert := kit.NewCA().Issue(kit.ID("service/echo"), time.Hour)
	ln, err := quic.ListenAddr("127.0.0.1:0", &tls.Config{NextProtos: []string{"test"}, Certificates: []tls.Certificate{*cert}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close() })
	if dialled, err = quic.DialAddr(t.Context(), ln.Addr().String(), &tls.Config{NextProtos: []string{"test"}, InsecureSkipVerify: true}, nil); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { dialled.CloseWithError(0, "") })
	if accepted, err = ln.Accept(t.Context()); err != nil {
		t.Fatal(err)
	}
	return accepted, dialled
}

// connections returns the two ends of a connection over TCP.
func connections(t *testing.T) (local *net.TCPConn, process net.Conn) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	if process, err = net.Dial("tcp", ln.Addr().String()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { process.Close() })
	accepted, err := ln.Accept()
	if err != nil {
		t.Fatal(err)
	}
	return accepted.(*net.TCPConn), process
}
