package attacks

import (
	"errors"
	"fmt"
	"net"
	"testing"

	agentstatus "github.com/florete/florete/agent/status"
	"github.com/florete/florete/tests/kit"
	"github.com/florete/florete/tests/kit/agenttest"
)

// uidLogin is the ID of an account on host b that belongs to a person who logs in there.
const uidLogin = 4711

// TestOnHost attacks services that run on host b from other accounts of the same host.
func TestOnHost(t *testing.T) {
	const listens = "can listen as another account"
	run(t, []attack{
		{
			name: "another account at the port of a service that is down",
			try: func(t *testing.T, c *cluster) error {
				return c.squat(t, "tcp", "down", 8905)
			},
			refusal: "upstream-foreign",
			root:    listens,
		},
		{
			name: "an account of the system at the port of another one's service",
			try: func(t *testing.T, c *cluster) error {
				return c.squatAs(t, 1, "tcp", "down", 8905)
			},
			refusal: "upstream-foreign",
			root:    listens,
		},
		{
			name: "another account at the port of a service over UDP that is down",
			try: func(t *testing.T, c *cluster) error {
				return c.squat(t, "udp", "heard", 8902)
			},
			refusal: "upstream-foreign",
			root:    listens,
		},
	})
}

func (c *cluster) squat(t *testing.T, network, service string, port int) error {
	return c.squatAs(t, uidLogin, network, service, port)
}

// squatAs listens on the port of a service under another account, and then connects to the service
// as Alice. It returns the refusal of the forwarder of host b, or nil if the attacker receives
// data.
func (c *cluster) squatAs(t *testing.T, uid uint32, network, service string, port int) error {
	t.Helper()
	addr := fmt.Sprintf("%s.0.2:%d", c.loopback, port)
	heard := make(chan string, 16)
	var err error
	agenttest.As(t, uid, func() { err = listen(t, network, addr, heard) })
	if err != nil {
		t.Fatal(err)
	}
	before := c.refusals(t, "upstream-foreign")
	sent := make(chan error, 1)
	go func() {
		if network == "udp" {
			sent <- agenttest.SendInVain(t, uidAlice, c.listener(t, service), func() bool { return c.refusals(t, "upstream-foreign") > before })
		} else {
			sent <- agenttest.DialAs(t, uidAlice, c.listener(t, service))
		}
	}()
	kit.Eventually(t, "the service to hear it or the forwarder to refuse it", func() bool {
		return len(heard) > 0 || c.refusals(t, "upstream-foreign") > before
	})
	if len(heard) > 0 {
		return nil
	}
	<-sent
	return errors.New("upstream-foreign")
}

// listen listens on an address and sends everything that it receives to the channel heard.
func listen(t *testing.T, network, addr string, heard chan<- string) error {
	if network == "udp" {
		conn, err := net.ListenPacket(network, addr)
		if err != nil {
			return err
		}
		t.Cleanup(func() { conn.Close() })
		go note(func(b []byte) (int, error) { n, _, err := conn.ReadFrom(b); return n, err }, heard)
		return nil
	}
	ln, err := net.Listen(network, addr)
	if err != nil {
		return err
	}
	t.Cleanup(func() { ln.Close() })
	go func() {
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			go note(conn.Read, heard)
		}
	}()
	return nil
}

func note(read func([]byte) (int, error), heard chan<- string) {
	b := make([]byte, 64)
	for {
		n, err := read(b)
		if err != nil {
			return
		}
		heard <- string(b[:n])
	}
}

// refusals returns how often the forwarder of host b has refused a connection for a reason.
func (c *cluster) refusals(t *testing.T, reason string) int64 {
	t.Helper()
	r, _, err := agentstatus.Fetch(t.Context(), c.b.Socket())
	if err != nil {
		t.Fatal(err)
	}
	return r.Refusals[reason]
}
