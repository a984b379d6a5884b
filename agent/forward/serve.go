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

// sockets are where the forwarder answers programs of its host, by name. Of loopback, for
// metrics, there may be none.
type sockets map[string]net.Listener

// binds are how they are made. The status comes first: where another agent serves it, that one
// keeps all of its own.
func (f *forwarder) binds() []bind {
	return []bind{
		{"status", func() (net.Listener, error) { return status.Listen(f.Socket, 0o660) }},
		{"whois", func() (net.Listener, error) { return status.Listen(whois.Beside(f.Socket), everyone) }},
		{"ping", func() (net.Listener, error) { return status.Listen(ping.Beside(f.Socket), everyone) }},
		{"metrics", func() (net.Listener, error) { return status.Listen(status.MetricsBeside(f.Socket), 0o600) }},
		{"handover", func() (net.Listener, error) {
			return unixsock.Listen(status.Beside(f.Socket, "handover"), "unixpacket", 0o600)
		}},
		{loopback, func() (net.Listener, error) { return status.ListenMetrics(f.Metrics) }},
	}
}

// everyone is the mode of what every account may connect to. Metrics are the forwarder's alone:
// others read them where a service publishes them.
const everyone = 0o666

type bind struct {
	name   string
	listen func() (net.Listener, error)
}

const loopback = "loopback"

// listen binds all, or none, or has those of the process before.
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
			if ln != nil && ln.Addr().String() != f.Metrics { // it is elsewhere now
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

// unlink decides whether their names go with them: the last process removes them.
func (s sockets) unlink(yes bool) {
	for _, ln := range s {
		if u, ok := ln.(*net.UnixListener); ok {
			u.SetUnlinkOnClose(yes)
		}
	}
}

// serve answers until ctx ends.
func (f *forwarder) serve(ctx context.Context, s sockets) {
	page := status.NewMetricsPage(f.status)
	parallel(
		func() { status.Serve(ctx, s["status"], f.status) },
		func() {
			whois.Serve(ctx, s["whois"], &f.whois, func() []string { return f.older.sockets(f.Socket, "whois") })
		},
		func() { ping.Serve(ctx, s["ping"], f.names, f.ping) },
		func() { page.Serve(ctx, s["metrics"]) },
		func() {
			if ln := s[loopback]; ln != nil {
				page.Serve(ctx, ln)
			}
		})
}

// names reports whether the manifest names an account as a caller.
func (f *forwarder) names(uid uint32) bool {
	out := f.pings.Load()
	return out != nil && out.Names(uid)
}

// ping is what a connection of an account to a service meets.
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
