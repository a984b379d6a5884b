package inbound

import (
	"context"

	"github.com/florete/florete/agent/forward/announce"
	"github.com/florete/florete/agent/forward/splice"
	"github.com/florete/florete/agent/forward/telemetry"
	"github.com/florete/florete/agent/forward/transport"
	"github.com/florete/florete/agent/forward/wire"
)

// requests contains the first connection to a service for a stream of HTTP requests, and what
// belongs to it.
type requests struct {
	upstream splice.Conn
	forget   func()
	counted  telemetry.Conn
	origin   wire.Origin
	gated    bool // the caller must pass the gate of the service
}

// carryRequests serves a stream of HTTP requests to a service that learns its caller from HTTP
// headers, or is behind a gate. If the service closes its connection between two requests,
// carryRequests makes a new one.
func (s *Server) carryRequests(ctx context.Context, in *transport.Incoming, st wire.Stream, service published, r requests) {
	caller := announced(in, r.origin)
	received := func(n int) {
		r.counted.Sent.Add(int64(n)) // bytes to the service
		in.Usage.Read.Add(int64(n))
		in.Limits.Wait(st.Context().Done(), n)
	}
	sent := func(n int) {
		r.counted.Received.Add(int64(n))
		in.Limits.Wait(st.Context().Done(), n)
	}
	if r.gated && !caller.IsPerson() {
		s.refuse(in, service.Port, wire.Denied, "not a user, and the service has sso.mode = \"gate\"")
	}
	announce.HTTP{
		Caller:   caller,
		Gated:    r.gated,
		Upstream: known{r.upstream, r.forget},
		Dial: func(ctx context.Context) (splice.Conn, error) {
			conn, forget, err := s.dial(ctx, in, service, r.origin)
			if err != nil {
				return nil, err
			}
			return known{conn.(splice.Conn), forget}, nil
		},
		Failed: func(err error) { s.refuse(in, service.Port, failure(err), err.Error()) },
	}.Serve(ctx, announce.NewConn(st, caller, received, sent))
}

// known is a connection to a service that is registered with package whois. As long as the
// connection is open, the service can look up its caller there.
type known struct {
	splice.Conn
	forget func()
}

func (k known) Close() error {
	k.forget()
	return k.Conn.Close()
}
