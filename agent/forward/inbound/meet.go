package inbound

import (
	"errors"
	"time"

	"github.com/florete/florete/agent/forward/transport"
	"github.com/florete/florete/agent/forward/wire"
)

// introduce tells a caller and a host each other's address, as a relay. A host that is not to be met
// is no fault, and is not recorded as a refusal.
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
