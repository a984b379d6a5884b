package server_test

import (
	"errors"
	"net"
	"strconv"
	"strings"
	"testing"

	"github.com/florete/florete/providers/server"
	"github.com/florete/florete/tests/kit"
)

// TestListen checks that a server listens on all of its addresses until it is closed, and on none
// of them if one is not available.
func TestListen(t *testing.T) {
	port := strconv.Itoa(kit.Port())
	taken, err := net.Listen("tcp", "127.0.0.1:"+port)
	if err != nil {
		t.Fatal(err)
	}
	addresses := []string{"127.0.0.1:" + port, "127.0.0.2:" + port, "[::1]:" + port}
	if l, err := server.Listen(addresses); err == nil {
		l.Close()
		t.Fatal("listens on an address that is taken")
	}
	taken.Close()
	l, err := server.Listen(addresses)
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range addresses {
		near, err := net.Dial("tcp", a)
		if err != nil {
			t.Fatal(err)
		}
		far, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		if got := far.LocalAddr().String(); got != a {
			t.Errorf("what was dialed at %s is accepted at %s", a, got)
		}
		near.Close()
		far.Close()
	}
	left, err := net.Dial("tcp", addresses[1]) // this connection is never accepted
	if err != nil {
		t.Fatal(err)
	}
	defer left.Close()
	l.Close()
	if _, err := l.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("after Close: %v, want net.ErrClosed", err)
	}
	if _, err := left.Read(make([]byte, 1)); err == nil {
		t.Error("what nobody accepted stays open")
	}
	again, err := server.Listen(addresses[:1])
	if err != nil {
		t.Fatal(err)
	}
	again.Close()
	for _, bad := range [][]string{nil, {"203.0.113.5:4600"}} {
		if l, err := server.Listen(bad); err == nil {
			l.Close()
			t.Errorf("listens on %s", strings.Join(bad, ", "))
		}
	}
}
