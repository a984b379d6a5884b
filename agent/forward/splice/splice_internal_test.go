package splice

import (
	"bytes"
	"crypto/tls"
	"io"
	"net"
	"testing"
	"time"

	"github.com/quic-go/quic-go"

	"github.com/florete/florete/tests/kit"
)

// TestInterrupted: whatever a stream is about when it is taken for one that waits, all bytes
// pass, and the end.
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

// streams are the two ends of one over QUIC.
func streams(t *testing.T) (near, far *quic.Stream) {
	t.Helper()
	cert := kit.NewCA().Issue(kit.ID("service/echo"), time.Hour)
	ln, err := quic.ListenAddr("127.0.0.1:0", &tls.Config{NextProtos: []string{"test"}, Certificates: []tls.Certificate{*cert}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close() })
	dialled, err := quic.DialAddr(t.Context(), ln.Addr().String(), &tls.Config{NextProtos: []string{"test"}, InsecureSkipVerify: true}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { dialled.CloseWithError(0, "") })
	accepted, err := ln.Accept(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if far, err = dialled.OpenStreamSync(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err = far.Write([]byte{1}); err != nil {
		t.Fatal(err)
	}
	if near, err = accepted.AcceptStream(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err = near.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	return near, far
}

// connections are the two ends of one over TCP.
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
