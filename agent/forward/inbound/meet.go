package inbound

import (
	"errors"
	"time"

	"github.com/florete/florete/agent/forward/transport"
	"github.com/florete/florete/agent/forward/wire"
)

// introduce helps a caller to connect to a host directly instead of through this relay. It runs on
// a relay when a caller requests the address of the host at the end of a route, and tells the
// caller and the host each other's address. A host need not permit this, so introduce does not
// record a refusal.
func (s *Server) introduce(in *transport.Incoming, st wire.Stream, label string, done func(opened bool)) {
	code, err := wire.NoRoute, errors.New("a host that calls over TCP meets none")
	var m wire.Meeting
	if at, ok := in.Outside(); ok {
		m, code, err = s.Relay.Meet(in.Peer.ID, label, at)
	}
	done(err == nil)
	if err != nil {
		if code != wire.NoRoute {
			s.refuse(in, "", code, err.Error())
		}
		transport.Reset(st, code)
		return
	}
	st.SetDeadline(time.Now().Add(preambleTimeout))
	if _, err := st.Write(m.Append([]byte{wire.Connected})); err != nil {
		transport.Reset(st, wire.Reset)
		return
	}
	_ = st.Close()
	_, _ = st.Read(make([]byte, 1)) // until the caller has ended its direction
}
