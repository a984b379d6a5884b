package forward

import (
	"context"
	"fmt"
	"net"

	"github.com/florete/florete/agent/forward/handover"
	"github.com/florete/florete/agent/ping"
	"github.com/florete/florete/agent/status"
	"github.com/florete/florete/agent/whois"
	"github.com/florete/florete/internal/unixsock"
)

// sockets contains the sockets on which the forwarder answers programs of its host, such as flor.
// The keys are the names of the sockets. The metrics socket, on a loopback address, exists only if
// metrics are configured.
type sockets map[string]net.Listener

// binds returns a description of each socket, from which listen creates it. The status socket comes
// first: if another agent already serves the status socket, listen replaces none of that agent's
// sockets.
func (f *forwarder) binds() []bind {
	return []bind{
		{"status", func() (net.Listener, error) { return status.Listen(f.Socket, 0o660) }},
		{"whois", func() (net.Listener, error) { return status.Listen(whois.Beside(f.Socket), everyone) }},
		{"ping", func() (net.Listener, error) { return status.Listen(ping.Beside(f.Socket), everyone) }},
		{"session", func() (net.Listener, error) { return status.Listen(status.Beside(f.Socket, "session"), 0o660) }},
		{"metrics", func() (net.Listener, error) { return status.Listen(status.MetricsBeside(f.Socket), 0o600) }},
		{"handover", func() (net.Listener, error) {
			return unixsock.Listen(status.Beside(f.Socket, "handover"), "unixpacket", 0o600)
		}},
		{loopback, func() (net.Listener, error) { return status.ListenMetrics(f.Metrics) }},
	}
}

// everyone is the mode of sockets that every account may use. The metrics socket does not have this
// mode: only the forwarder's own account may read metrics directly, and other accounts read them
// through a published service.
const everyone = 0o666

type bind struct {
	name   string
	listen func() (net.Listener, error)
}

const loopback = "loopback"

// listen creates all sockets. After a takeover it uses those of the previous process instead. If
// one socket cannot be created, listen creates none.
func (f *forwarder) listen() (_ sockets, err error) {
	s := sockets{}
	for _, b := range f.binds() {
		var ln net.Listener
		file := f.sockets.Other(handover.Own + b.name)
		if file != nil {
			ln, err = net.FileListener(file)
			file.Close()
		}
		if b.name == loopback {
			if ln != nil && ln.Addr().String() != f.Metrics { // the configured address of metrics has changed
				ln.Close()
				ln = nil
			}
			if f.Metrics == "" {
				continue
			}
		}
		if err == nil && ln == nil {
			ln, err = b.listen()
		}
		if err != nil {
			s.close()
			return nil, err
		}
		s[b.name] = ln
	}
	return s, nil
}

func (s sockets) close() {
	for _, ln := range s {
		ln.Close()
	}
}

// unlink sets whether closing the sockets also removes the files of Unix sockets. Only the last
// process in a sequence of handovers removes them.
func (s sockets) unlink(yes bool) {
	for _, ln := range s {
		if u, ok := ln.(*net.UnixListener); ok {
			u.SetUnlinkOnClose(yes)
		}
	}
}

// serve answers requests on all sockets until ctx ends.
func (f *forwarder) serve(ctx context.Context, s sockets) {
	page := status.NewMetricsPage(f.status)
	parallel(
		func() { status.Serve(ctx, s["status"], f.status) },
		func() {
			whois.Serve(ctx, s["whois"], &f.whois, func() []string { return f.older.sockets(f.Socket, "whois") })
		},
		func() {
			status.ServeSessions(ctx, s["session"], &f.sessions, func() []string { return f.older.sockets(f.Socket, "session") })
		},
		func() { ping.Serve(ctx, s["ping"], f.names, f.ping) },
		func() { page.Serve(ctx, s["metrics"]) },
		func() {
			if ln := s[loopback]; ln != nil {
				page.Serve(ctx, ln)
			}
		})
}

// names reports whether the manifest names the account with the given uid as a caller.
func (f *forwarder) names(uid uint32) bool {
	out := f.pings.Load()
	return out != nil && out.Names(uid)
}

// ping checks whether processes of an account can connect to a service. The account is given by its
// uid.
func (f *forwarder) ping(ctx context.Context, uid uint32, service string) ping.Result {
	out := f.pings.Load()
	if out == nil {
		m := f.snapshot.Load().manifest
		return ping.Result{Service: service, Steps: []ping.Step{{
			Name: ping.Name, Error: fmt.Sprintf("the forwarder waits for the manifest, or the certificate of %s", m.Identity.ID), Remedy: "flor doctor",
		}}}
	}
	return out.Ping(ctx, uid, service)
}
