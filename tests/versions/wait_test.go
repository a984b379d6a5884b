package versions

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/internal/hostdir"
	"github.com/florete/florete/tests/local"
)

// until waits for a condition.
func (c *cluster) until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(local.Limit); !ok(); time.Sleep(20 * time.Millisecond) {
		if time.Now().Before(end) {
			continue
		}
		var all strings.Builder
		for _, h := range c.hosts() {
			needs, err := h.Needs()
			fmt.Fprintf(&all, "\n%s: ended %v, %v", h.Name, h.Ended(), err)
			for _, part := range []string{"activate", "agent"} {
				log, _ := os.ReadFile(h.Log(part))
				fmt.Fprintf(&all, "\n%s", log[max(0, len(log)-1000):])
			}
			for id, s := range needs {
				if s.State != hostdir.NeedFulfilled || s.Error != nil {
					fmt.Fprintf(&all, "\n  %s is %s: %+v", id, s.State, s.Error)
				}
			}
		}
		t.Fatalf("waited in vain for %s%s", what, &all)
	}
}

// fulfilled waits for all needs of these hosts, of all without any.
func (c *cluster) fulfilled(t *testing.T, hosts ...*local.Host) {
	t.Helper()
	if len(hosts) == 0 {
		hosts = c.hosts()
	}
	c.until(t, "all needs", func() bool { return !slices.ContainsFunc(hosts, func(h *local.Host) bool { return !h.Fulfilled() }) })
}

// has waits until documents of a serial are in force on these hosts.
func (c *cluster) has(t *testing.T, want int64, hosts ...*local.Host) {
	t.Helper()
	for _, h := range hosts {
		c.until(t, fmt.Sprintf("the documents of %s with serial %d", h.Name, want), func() bool { return serial(t, h) == want })
	}
}

// serial is that of the documents in force.
func serial(t *testing.T, h *local.Host) int64 {
	t.Helper()
	d, err := h.Layout().Manifest()
	check(t, err)
	return d.Envelope.Serial
}

func state(t *testing.T, h *local.Host, need string) hostdir.NeedState {
	t.Helper()
	s, err := h.Layout().NeedState(need)
	check(t, err)
	return s
}

// waits waits until a need of a host does because of a newer format, and checks that people
// learn of both formats and of what to do.
func (c *cluster) waits(t *testing.T, h *local.Host, need string, formats ...string) {
	t.Helper()
	var s hostdir.NeedState
	c.until(t, fmt.Sprintf("%s of %s to wait for another release", need, h.Name), func() bool {
		s = state(t, h, need)
		return s.Error != nil && s.Error.Code == hostapi.CodeNewerFormat.Name
	})
	newer(t, *s.Error, formats...)
	if s.State != hostdir.NeedWaiting {
		t.Errorf("%s of %s is %s, want %s", need, h.Name, s.State, hostdir.NeedWaiting)
	}
}

// newer checks what is reported about a format.
func newer(t *testing.T, e hostdir.NeedError, formats ...string) {
	t.Helper()
	if e.Kind != string(hostapi.Transient) || e.Code != hostapi.CodeNewerFormat.Name {
		t.Errorf("%+v, want %s %s", e, hostapi.Transient, hostapi.CodeNewerFormat.Name)
	}
	for _, part := range append(formats, "upgrade") {
		if !strings.Contains(e.Message, part) {
			t.Errorf("%s, want %q in it", e.Message, part)
		}
	}
}

func needs(t *testing.T, h *local.Host) map[string]hostdir.NeedState {
	t.Helper()
	all, err := h.Needs()
	check(t, err)
	return all
}

// kept checks that needs but that for documents stand as before: nothing was requested again,
// and no unit notified again.
func kept(t *testing.T, h *local.Host, before map[string]hostdir.NeedState) {
	t.Helper()
	for id, s := range needs(t, h) {
		was := before[id]
		if id != documents && (s.State != was.State || s.Answers != was.Answers || s.NotifiedGeneration != was.NotifiedGeneration) {
			t.Errorf("%s of %s was %+v, is %+v", id, h.Name, was, s)
		}
	}
}
