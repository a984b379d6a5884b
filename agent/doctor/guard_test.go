package doctor_test

import (
	"context"
	"strings"
	"testing"

	"github.com/florete/florete/agent/doctor"
	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/tests/kit/agenttest"
)

// TestGuard checks that the doctor reports an upstream on loopback that every account of the host
// can connect to. An upstream that is guarded or needs no guard is not reported.
func TestGuard(t *testing.T) {
	p := newPatient(t)
	c := p.Config
	c.Layout, c.Socket = p.Ursula.Layout, p.Ursula.Socket()
	for _, x := range []struct {
		upstream string
		guards   bool
		want     int
	}{
		{"127.0.0.1:8080", false, 1}, {"localhost:8080", false, 1}, {"[::1]:8080", false, 1}, {"127.0.0.1:8080", true, 0},
		{"unix:/run/outline.sock", false, 0}, {"192.0.2.7:80", false, 0}, {"nas.example.org:80", false, 0},
	} {
		p.Publish.Publish[0] = document.Published{ID: agenttest.Outline, Upstream: x.upstream, Allow: []document.Allow{{ID: agenttest.Alice}}}
		p.AcceptUrsula()
		c.Guards = func(context.Context) bool { return x.guards }
		for _, check := range doctor.Run(t.Context(), c).Checks {
			if check.Name != "guard" {
				continue
			}
			if len(check.Findings) != x.want {
				t.Errorf("%s, guarded %v: %+v", x.upstream, x.guards, check)
			}
			for _, f := range check.Findings {
				if !strings.Contains(f.Problem, x.upstream) || !strings.Contains(f.Fix, "florete-guard.service") {
					t.Errorf("%s: %+v", x.upstream, f)
				}
			}
		}
	}
}
