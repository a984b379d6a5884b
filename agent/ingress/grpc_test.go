package ingress

import (
	"context"
	"crypto/tls"
	"net"
	"net/netip"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/tests/kit"
)

// healthService starts a gRPC service that reports one status for every name, and returns its
// address.
func healthService(t *testing.T, reports grpc_health_v1.HealthCheckResponse_ServingStatus) netip.AddrPort {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := grpc.NewServer()
	h := health.NewServer()
	h.SetServingStatus("", reports)
	grpc_health_v1.RegisterHealthServer(s, h)
	go func() { _ = s.Serve(l) }()
	t.Cleanup(s.Stop)
	return netip.MustParseAddrPort(l.Addr().String())
}

// TestGRPCRules checks that rules for paths and the time limit hold for calls of gRPC, whose paths
// consist of a service and a method.
func TestGRPCRules(t *testing.T) {
	t.Parallel()
	for name, start := range map[string]func(*testing.T, int, int) started{"nginx": newNginx, "caddy": newCaddy} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ports := kit.Ports(2)
			i := &ingress{started: start(t, ports[0], ports[1]), http: ports[0], https: ports[1]}
			i.start(t)
			crt, key, roots := certificate(t, "open.example", "closed.example", "other.example", "near.example", "far.example")
			main := healthService(t, grpc_health_v1.HealthCheckResponse_SERVING)
			other := healthService(t, grpc_health_v1.HealthCheckResponse_NOT_SERVING)
			const check = "/grpc.health.v1.health/check"
			site := func(name string, rules document.PublicRules) Site {
				return Site{Name: name, Upstream: main, GRPC: true, Rules: rules, Ports: map[string]netip.AddrPort{"other": other}, Certificate: crt, Key: key, Digest: "1"}
			}
			paths := func(rules ...document.PathRule) document.PublicRules {
				return document.PublicRules{Paths: rules, Timeout: 2}
			}
			s := Sites{All: []Site{
				site("closed.example", paths(document.PathRule{Path: check, Deny: true})),
				site("far.example", paths(document.PathRule{Path: "/grpc.health.v1.health", From: []netip.Prefix{netip.MustParsePrefix("192.168.0.0/16")}})),
				site("near.example", paths(document.PathRule{Path: "/", Deny: true}, document.PathRule{Path: check, From: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}})),
				site("open.example", paths(document.PathRule{Path: "/grpc.reflection.v1.serverreflection", Deny: true})),
				site("other.example", paths(document.PathRule{Path: check, Port: "other"})),
			}}
			kit.Eventually(t, "the proxy accepts the sites", func() bool {
				_, err := i.Apply(t.Context(), s)
				return err == nil
			})
			client := func(name string) grpc_health_v1.HealthClient {
				conn, err := grpc.NewClient("passthrough:///"+local(i.https), grpc.WithTransportCredentials(credentials.NewTLS(&tls.Config{RootCAs: roots, ServerName: name})), grpc.WithAuthority(name))
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { conn.Close() })
				return grpc_health_v1.NewHealthClient(conn)
			}
			call := func(name string) (grpc_health_v1.HealthCheckResponse_ServingStatus, error) {
				ctx, cancel := context.WithTimeout(t.Context(), kit.Patience)
				defer cancel()
				answer, err := client(name).Check(ctx, &grpc_health_v1.HealthCheckRequest{})
				return answer.GetStatus(), err
			}
			settles(t, "it serves", func() bool { _, err := call("open.example"); return err == nil })
			for name, want := range map[string]struct {
				status grpc_health_v1.HealthCheckResponse_ServingStatus
				code   codes.Code
			}{
				"open.example":   {grpc_health_v1.HealthCheckResponse_SERVING, codes.OK},
				"other.example":  {grpc_health_v1.HealthCheckResponse_NOT_SERVING, codes.OK},
				"near.example":   {grpc_health_v1.HealthCheckResponse_SERVING, codes.OK},
				"closed.example": {code: codes.PermissionDenied},
				"far.example":    {code: codes.PermissionDenied},
			} {
				if got, err := call(name); got != want.status || status.Code(err) != want.code {
					t.Errorf("%s: got %s, %v, want %s, %s", name, got, err, want.status, want.code)
				}
			}
			if name == "caddy" {
				return // it has no time limit for HTTP/2
			}
			ctx, cancel := context.WithTimeout(t.Context(), kit.Patience)
			defer cancel()
			silent, err := client("open.example").Watch(ctx, &grpc_health_v1.HealthCheckRequest{})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := silent.Recv(); err != nil {
				t.Fatal(err)
			}
			began := time.Now()
			if _, err := silent.Recv(); err == nil || ctx.Err() != nil {
				t.Errorf("after %s: %v, want an end after two seconds without an answer", time.Since(began), err)
			}
		})
	}
}
