package splice

import "github.com/quic-go/quic-go"

// small is the size of writes that may share a packet with those of other streams.
const small = 1000

// together lets n bytes that were just written to the stream share a packet with data that other
// streams are about to write.
//
// The write has woken quic-go's loop, which would run next and send a packet for this data alone.
// Starting a goroutine takes its place in the scheduler, so that the loop runs after the goroutines
// that are ready, most of which write too. If the runtime schedules differently, only the goroutine
// is wasted.
func (s *session) together(n int) {
	if _, ok := s.Stream.(*quic.Stream); ok && n <= small {
		go func() {}()
	}
}
