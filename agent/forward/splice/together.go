package splice

import "github.com/quic-go/quic-go"

// small is the size in bytes of the largest writes that may share a packet with writes of other
// streams.
const small = 1000

// together lets a small write share a packet with data that other streams are about to write. It is
// called after a write to the stream, with the number of bytes that were written.
//
// The write has woken up quic-go's loop, which would run next and send a packet with this data
// alone. together starts a goroutine that takes the place of the loop in the scheduler. The loop
// then runs after the goroutines that are ready, most of which write too. If the runtime schedules
// in another way, the only cost is the goroutine.
func (s *session) together(n int) {
	if _, ok := s.Stream.(*quic.Stream); ok && n <= small {
		go func() {}()
	}
}
