package outbound_test

import (
	"net"
	"os"
	"testing"
	"time"

	"github.com/florete/florete/tests/kit"
	"github.com/florete/florete/tests/kit/agenttest"
)

// TestUserTakesNoMore checks the limit of a user's connections, and that other users have limits of
// their own.
func TestUserTakesNoMore(t *testing.T) {
	agenttest.Root(t, "can start a process of another user")
	const other = 64998
	s := start(t, 2)
	s.Reach.Callers[0].UIDs = []uint32{uint32(os.Getuid()), other}
	s.apply(t)

	open := func() (net.Conn, error) {
		conn, err := net.Dial("tcp", s.Local)
		if err != nil { // refused as soon as it was there
			return nil, err
		}
		t.Cleanup(func() { conn.Close() })
		conn.SetDeadline(time.Now().Add(kit.Patience))
		return conn, agenttest.Ping(conn)
	}
	first, err := open()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := open(); err != nil {
		t.Fatal(err)
	}
	if _, err := open(); err == nil {
		t.Error("a third is let through")
	}
	if n := s.counted.Summary().Refusals["too-many"]; n != 1 {
		t.Errorf("%d refusals, want 1", n)
	}
	if err := agenttest.DialAs(t, other, s.Local); err != nil {
		t.Errorf("another user: %v", err)
	}
	first.Close()
	kit.Eventually(t, "room after one has ended", func() bool { _, err := open(); return err == nil })
}
