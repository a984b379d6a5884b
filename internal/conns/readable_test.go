package conns_test

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/florete/florete/internal/conns"
	"github.com/florete/florete/tests/kit"
)

// TestWaitReadable checks that WaitReadable returns when data or the end of data arrives, that the
// data can still be read, and that it keeps to the read deadline.
func TestWaitReadable(t *testing.T) {
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := conns.Listen(inner, conns.Limit{Total: 1, Prefix: 1})
	t.Cleanup(func() { l.Close() })
	peer, err := net.Dial("tcp", inner.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { peer.Close() })
	ours, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	waits := func(c net.Conn) <-chan error {
		result := make(chan error, 1)
		go func() { result <- conns.WaitReadable(c) }()
		return result
	}
	over := tls.Server(ours, &tls.Config{})
	over.SetReadDeadline(time.Now())
	if err := conns.WaitReadable(over); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("after the deadline: %v", err)
	}
	over.SetReadDeadline(time.Time{})
	result := waits(over)
	kit.Parked(t, 1, "conns.WaitReadable")
	if len(result) > 0 {
		t.Fatal("returned although nothing has arrived")
	}
	io.WriteString(peer, "a")
	if err := kit.Reads(t, "data", result); err != nil {
		t.Errorf("data: %v", err)
	}
	if _, err := io.ReadFull(ours, make([]byte, 1)); err != nil {
		t.Errorf("data are gone: %v", err)
	}
	result = waits(over)
	peer.Close()
	if err := kit.Reads(t, "the end", result); err != nil {
		t.Errorf("end of data: %v", err)
	}
}

// TestWaitReadablePipe checks the same for a connection without a socket.
func TestWaitReadablePipe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ours, peer := net.Pipe()
		ours.SetReadDeadline(time.Now().Add(time.Second))
		if err := conns.WaitReadable(ours); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("after the deadline: %v", err)
		}
		ours.SetReadDeadline(time.Time{})
		go io.WriteString(peer, "a")
		if err := conns.WaitReadable(ours); err != nil {
			t.Errorf("data: %v", err)
		}
		peer.Close()
		if err := conns.WaitReadable(ours); err != io.EOF {
			t.Errorf("end of data: %v", err)
		}
	})
}
