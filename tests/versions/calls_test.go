package versions

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/florete/florete/agent/agenttest"
	agentstatus "github.com/florete/florete/agent/status"
	"github.com/florete/florete/internal/hostdir"
	"github.com/florete/florete/tests/local"
)

// listener is where a host's processes reach a service.
func (c *cluster) listener(t *testing.T, h *local.Host, service string) string {
	t.Helper()
	d, err := h.Layout().Manifest()
	check(t, err)
	for _, r := range d.Manifest().Forwarder.Reach {
		if r.ID.Name() == service {
			return r.Listen.String()
		}
	}
	t.Fatalf("%s does not reach %s", h.Name, service)
	return ""
}

// reaches waits until a service sends back what alice sends it from a host.
func (c *cluster) reaches(t *testing.T, h *local.Host, network, service string) {
	t.Helper()
	c.until(t, fmt.Sprintf("%s from %s", service, h.Name), func() bool {
		conn, err := net.Dial(network, c.listener(t, h, service))
		if err != nil {
			return false
		}
		defer conn.Close()
		_ = conn.SetDeadline(time.Now().Add(time.Second)) // datagrams may be lost
		return agenttest.Ping(conn) == nil
	})
}

// refused calls a service from a host until the forwarders of both refuse it for a reason. They
// put documents in force a moment after activation.
func (c *cluster) refused(t *testing.T, from, to *local.Host, network, service, reason string) {
	t.Helper()
	before := map[*local.Host]int64{from: refusals(t, from, reason), to: refusals(t, to, reason)}
	c.until(t, fmt.Sprintf("%s to be refused from %s: %s", service, from.Name, reason), func() bool {
		conn, err := net.Dial(network, c.listener(t, from, service))
		if err != nil {
			return false
		}
		defer conn.Close()
		_ = conn.SetDeadline(time.Now().Add(time.Second))
		return agenttest.Ping(conn) != nil && refusals(t, from, reason) > before[from] && refusals(t, to, reason) > before[to]
	})
}

// refusals is how often a host's forwarder has refused for a reason.
func refusals(t *testing.T, h *local.Host, reason string) int64 {
	t.Helper()
	r, _, err := agentstatus.Fetch(t.Context(), h.Socket())
	if err != nil {
		return -1 // it starts
	}
	return r.Refusals[reason]
}

// announces reports whether a service that sends back what it receives is sent who calls.
func (c *cluster) announces(t *testing.T, from *local.Host, service string) bool {
	t.Helper()
	conn, err := net.Dial("tcp", c.listener(t, from, service))
	if err != nil {
		return false
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(time.Second))
	signature := []byte("\r\n\r\n\x00\r\nQUIT\n") // of PROXY protocol version 2
	got := make([]byte, len(signature))
	if _, err := conn.Write(signature[:1]); err != nil {
		return false
	}
	_, err = io.ReadFull(conn, got)
	return err == nil && bytes.Equal(got, signature)
}

// renews has activation of a host request needs again, and waits for another certificate, or
// another answer where there is none.
func (c *cluster) renews(t *testing.T, h *local.Host, needs ...string) {
	t.Helper()
	number := func(need string) string {
		svid, err := h.SVID(need)
		check(t, err)
		return svid.Leaf.SerialNumber.String()
	}
	answers, numbers := map[string]int{}, map[string]string{}
	for _, need := range needs {
		answers[need] = state(t, h, need).Answers
		if strings.HasPrefix(need, "cert-") {
			numbers[need] = number(need)
		}
	}
	c.command(t, h, append([]string{"refetch"}, needs...)...)
	for _, need := range needs {
		c.until(t, fmt.Sprintf("%s of %s to be renewed", need, h.Name), func() bool {
			s := state(t, h, need)
			return s.State == hostdir.NeedFulfilled && s.Answers > answers[need]
		})
		if old, ok := numbers[need]; ok && number(need) == old {
			t.Errorf("%s of %s is the same certificate", need, h.Name)
		}
	}
}

// command runs flor of a host.
func (c *cluster) command(t *testing.T, h *local.Host, args ...string) {
	t.Helper()
	_, err := local.Operator{Bin: h.Bin}.Run(t.Context(), "flor", append(args, "--state", string(h.Layout()), "--refetch", h.Refetch())...)
	check(t, err)
}

// logged reports whether a part of a host has logged all of these.
func logged(t *testing.T, h *local.Host, part string, what ...string) bool {
	t.Helper()
	b, err := os.ReadFile(h.Log(part))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		all := true
		for _, w := range what {
			all = all && strings.Contains(line, w)
		}
		if all {
			return true
		}
	}
	return false
}

// edit changes a file of documents that were compiled.
func edit(t *testing.T, dir, file, old, new string) {
	t.Helper()
	path := filepath.Join(dir, file)
	b, err := os.ReadFile(path)
	check(t, err)
	changed := strings.Replace(string(b), old, new, 1)
	if changed == string(b) {
		t.Fatalf("%s: no %s: %s", path, old, b)
	}
	check(t, os.WriteFile(path, []byte(changed), 0o600))
}
