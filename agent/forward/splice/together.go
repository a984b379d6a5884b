package splice

import "github.com/quic-go/quic-go"

// small is what shares a packet with what other streams write.
const small = 1000

// together has n bytes that were just written to the stream go with what other streams are
// about to write.
//
// The write has woken quic-go's loop, which would run next and send a packet for it alone. A
// goroutine that begins takes that place, and the loop goes behind those that are ready, most
// of which write too. With a runtime of another order nothing is lost but that goroutine.
func (s *session) together(n int) {
	if _, ok := s.Stream.(*quic.Stream); ok && n <= small {
		go func() {}()
	}
}
