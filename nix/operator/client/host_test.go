package client_test

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/florete/florete/agent/forward"
	"github.com/florete/florete/agent/localapi"
	"github.com/florete/florete/agent/status"
	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/nix/operator/client"
	"github.com/florete/florete/nix/operator/compile"
	"github.com/florete/florete/tests/kit"
	"github.com/florete/florete/tests/kit/agenttest"
)

// TestSessions lists the sessions of a host, and ends one, through two forwarders and the services
// that publish the API of the host. The access log of the host names the operator.
func TestSessions(t *testing.T) {
	c := agenttest.NewCluster(t, agenttest.Echo(t))
	dir := t.TempDir()
	read, admin := filepath.Join(dir, "florete-host.sock"), filepath.Join(dir, "florete-host-refetch.sock")
	apiID, adminID := kit.ID("service/ursula/host"), kit.ID("service/ursula/refetch")
	allow := []document.Allow{{ID: agenttest.Alice}}
	c.Publish.Publish[0].Remote = document.RemoteVNC
	c.Publish.Publish = append(c.Publish.Publish,
		document.Published{ID: apiID, Upstream: "unix:" + read, Allow: allow},
		document.Published{ID: adminID, Upstream: "unix:" + admin, Allow: allow})
	ports := map[spiffe.ID]netip.AddrPort{apiID: agenttest.Loopback(), adminID: agenttest.Loopback()}
	for id, listen := range ports {
		c.Reach.Reach = append(c.Reach.Reach, document.Reachable{ID: id, Callers: []spiffe.ID{agenttest.Alice}, Listen: listen, Endpoints: c.Reach.Reach[0].Endpoints})
		c.Ursula.Deliver(c.CA, id, time.Hour)
	}
	accept := func(identity document.Announcement) {
		c.Publish.Publish[2].Identity = identity
		c.Ursula.Accept(c.Publish, agenttest.Outline, apiID, adminID)
		kit.Eventually(t, "the manifest to be in force", func() bool {
			r, _, err := status.Fetch(t.Context(), c.Ursula.Socket())
			return err == nil && r.State == "running" && r.Manifest != nil && r.Manifest.Serial == c.Ursula.Serial
		})
	}
	c.AcceptLaptop()

	config := localapi.Config{Layout: c.Ursula.Layout, Agent: c.Ursula.Socket(), Refetch: dir, AdminSocket: admin}
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	defer all.Wait()
	defer cancel()
	for path, handler := range map[string]func(context.Context, net.Listener) error{
		read: func(ctx context.Context, ln net.Listener) error {
			return localapi.Serve(ctx, ln, localapi.ReadHandler(config))
		},
		admin: func(ctx context.Context, ln net.Listener) error {
			return localapi.Serve(ctx, ln, localapi.AdminHandler(config))
		},
	} {
		ln, err := status.Listen(path, 0o660)
		if err != nil {
			t.Fatal(err)
		}
		all.Go(func() { _ = handler(ctx, ln) })
	}
	var log output
	for h, access := range map[*agenttest.Host]io.Writer{c.Ursula: &log, c.Laptop: io.Discard} {
		all.Go(func() {
			_ = forward.Run(ctx, forward.Config{Layout: h.Layout, Socket: h.Socket(), Log: slog.New(slog.DiscardHandler), Access: access, Grace: time.Millisecond})
		})
	}
	accept(document.Unannounced)
	kit.Eventually(t, "laptop to run", func() bool {
		r, _, err := status.Fetch(t.Context(), c.Laptop.Socket())
		return err == nil && r.State == "running"
	})

	service := func(id spiffe.ID, upstream string) compile.Service {
		return compile.Service{IDs: []spiffe.ID{id}, Hosts: []string{"ursula"}, ListenPort: int(ports[id].Port()), Upstream: "unix:" + upstream}
	}
	topology := compile.Topology{TrustDomain: kit.Domain, Hosts: map[string]compile.Host{"ursula": {}}, Services: map[string]compile.Service{
		"screen": {IDs: []spiffe.ID{agenttest.Outline}, Hosts: []string{"ursula"}, Protocol: "vnc"},
		"host":   service(apiID, read), "refetch": service(adminID, admin),
	}}
	t.Setenv("HTTP_PROXY", "socks5h://"+c.SOCKS[agenttest.Alice])
	hosts, err := client.ReachHosts(topology, "forwarder")
	if err != nil {
		t.Fatal(err)
	}

	conn, err := net.Dial("tcp", c.Local)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(kit.Patience))
	if err := agenttest.Ping(conn); err != nil {
		t.Fatal(err)
	}
	open, err := hosts.Sessions(t.Context(), t.Output())
	if err != nil || len(open) != 1 || open[0].Host != "ursula" || open[0].Caller != agenttest.Alice || open[0].Protocol != document.RemoteVNC {
		t.Fatalf("%+v, %v", open, err)
	}
	var table strings.Builder
	if err := client.PrintSessions(&table, open, open[0].Begun.Add(90*time.Second)); err != nil || !strings.Contains(table.String(), "ursula  "+open[0].ID+"  service/outline  vnc       user/alice  ") || !strings.Contains(table.String(), "1m30s") {
		t.Errorf("%v:\n%s", err, &table)
	}

	// Without the forwarder's word, a caller could claim to be anyone.
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+ports[adminID].String()+"/end?session="+open[0].ID, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Host = "refetch.ursula.demo.flor.rete"
	r.Header.Set("X-Forwarded-Client-Cert", "By="+adminID.String()+";Hash=00;URI="+agenttest.Bob.String())
	answer, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	if answer.StatusCode != http.StatusForbidden {
		t.Errorf("as bob: %s", answer.Status)
	}
	if _, err := hosts.End(t.Context(), open[0]); err == nil || !strings.Contains(err.Error(), `write services.refetch.identity = "http"`) {
		t.Errorf("without identity: %v", err)
	}
	if err := agenttest.Ping(conn); err != nil {
		t.Fatal(err)
	}
	accept(document.HTTPHeaders)
	wrong := open[0]
	wrong.ID = "nothing"
	if _, err := hosts.End(t.Context(), wrong); err == nil || !strings.Contains(err.Error(), "no such session") {
		t.Errorf("another ID: %v", err)
	}
	if text, err := hosts.End(t.Context(), open[0]); err != nil || text != "session "+open[0].ID+": ended" {
		t.Fatalf("%q, %v", text, err)
	}
	if n, err := conn.Read(make([]byte, 1)); err == nil {
		t.Errorf("%d bytes, want a reset", n)
	}
	kit.Eventually(t, "the access log", func() bool {
		return strings.Contains(log.String(), `"end":"ended-by-operator"`) && strings.Contains(log.String(), `"by":"`+agenttest.Alice.String()+`"`)
	})
	if open, err = hosts.Sessions(t.Context(), t.Output()); err != nil || len(open) != 0 {
		t.Errorf("afterwards: %+v, %v", open, err)
	}

	delete(topology.Services, "host")
	if _, err := hosts.Sessions(t.Context(), t.Output()); err == nil || !strings.Contains(err.Error(), "host ursula: no service publishes unix:/run/florete-host.sock there") {
		t.Errorf("no API: %v", err)
	}
}

// output is a bytes.Buffer for several goroutines.
type output struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.Write(b)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.String()
}
