package outbound_test

import (
	"log/slog"
	"testing"

	"github.com/florete/florete/agent/forward/handover"
	"github.com/florete/florete/agent/forward/inbound"
	"github.com/florete/florete/agent/forward/outbound"
	"github.com/florete/florete/agent/forward/telemetry"
	"github.com/florete/florete/agent/forward/transport"
	"github.com/florete/florete/agent/forward/usage"
	"github.com/florete/florete/agent/whois"
	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostdir"
	"github.com/florete/florete/tests/kit"
	"github.com/florete/florete/tests/kit/agenttest"
)

func TestMain(m *testing.M) { agenttest.Main(m) }

// servers are both sides of a cluster whose service is an echo.
type servers struct {
	*agenttest.Cluster
	out     *outbound.Server
	counted *telemetry.Counters // by out
}

func start(t *testing.T, perUser int) *servers {
	t.Helper()
	s := &servers{Cluster: agenttest.NewCluster(t, agenttest.Echo(t)), counted: &telemetry.Counters{}}
	ursula, laptop := s.Ursula.Identities(t), s.Laptop.Identities(t)
	log := slog.New(slog.DiscardHandler)
	in := inbound.New(inbound.Config{Usage: &usage.Table{}, Whois: &whois.Table{}, Identities: func() *hostdir.SVIDSet { return ursula }, Metrics: &telemetry.Counters{}, Log: log})
	t.Cleanup(in.Close)
	if errs := in.Apply(s.Publish); len(errs) > 0 {
		t.Fatal(errs)
	}
	pool, err := transport.NewPool(func() *hostdir.SVIDSet { return laptop }, &usage.Table{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	s.out = outbound.New(outbound.Config{Pool: pool, Identities: func() *hostdir.SVIDSet { return laptop }, Sockets: &handover.Store{}, Metrics: s.counted, Log: log, PerUser: perUser})
	t.Cleanup(s.out.Close)
	s.apply(t)
	return s
}

// apply puts Reach in force.
func (s *servers) apply(t *testing.T) {
	t.Helper()
	if errs := s.out.Apply(document.Manifest{TrustDomain: kit.Domain, Forwarder: s.Reach}); len(errs) > 0 {
		t.Fatal(errs)
	}
}
