package splice

import (
	"context"
	"errors"
	"io"
	"sync"
	"sync/atomic"

	"github.com/quic-go/quic-go"

	"github.com/florete/florete/agent/forward/acl"
	"github.com/florete/florete/agent/forward/usage"
	"github.com/florete/florete/agent/forward/wire"
)

// Joined describes a connection through a relay: the streams to the two hosts that it connects,
// their limits, and the counters for their traffic.
type Joined struct {
	From, To wire.Stream
	// Sent counts the bytes that were written to To, and Received those that were written to From.
	// Read counts the bytes that were read from From.
	Sent, Received, Read *atomic.Int64
	Limits               *acl.Share // traffic limits of the caller
}

// Join forwards data in both directions between two streams. When one stream ends or is reset, Join
// ends the other one in the same way and with the same code. It returns when both directions have
// ended: nil after a normal end, and otherwise the reason. If ctx ends, Join resets both streams
// with the code Stopping.
func Join(ctx context.Context, j Joined) error {
	defer context.AfterFunc(ctx, func() {
		for _, st := range []wire.Stream{j.From, j.To} {
			st.CancelWrite(quic.StreamErrorCode(wire.Stopping))
			st.CancelRead(quic.StreamErrorCode(wire.Stopping))
		}
	})()
	var sent error
	var directions sync.WaitGroup
	directions.Go(func() { sent = j.carry(ctx, j.From, j.To, j.Read, j.Sent) })
	received := j.carry(ctx, j.To, j.From, nil, j.Received)
	directions.Wait()
	if sent != nil {
		return sent
	}
	return received
}

// carry forwards data in one direction until that direction has ended.
func (j Joined) carry(ctx context.Context, from, to wire.Stream, read, carried *atomic.Int64) error {
	// This notices STOP_SENDING and the end of the connection at once. Otherwise only the next
	// write would notice them.
	sending := to.Context()
	cancelled := context.AfterFunc(sending, func() {
		if cause := context.Cause(sending); cause != quic.ErrStreamClosed {
			from.CancelRead(code(cause))
		}
	})
	defer cancelled()
	var one [1]byte
	for {
		// Peek first, so that an idle stream holds no buffer.
		if _, err := from.Peek(one[:]); err != nil {
			if errors.Is(err, io.EOF) {
				_, _ = from.Read(one[:]) // quic-go frees the stream only after a Read that returns the end
				return to.Close()
			}
			to.CancelWrite(code(err))
			return err
		}
		b := usage.GetBuffer()
		n, err := from.Read(b[:min(len(b), j.Limits.Most())])
		count(read, n)
		if n > 0 {
			if _, err = to.Write(b[:n]); err != nil {
				from.CancelRead(code(err))
			}
			count(carried, n)
		}
		usage.PutBuffer(b)
		if err != nil && !errors.Is(err, io.EOF) {
			to.CancelWrite(code(err))
			return err
		}
		j.Limits.Wait(ctx.Done(), n)
	}
}

// code returns the code of a stream that was reset. It returns wire.Reset for any other error.
func code(err error) quic.StreamErrorCode {
	var reset *quic.StreamError
	if errors.As(err, &reset) {
		return reset.ErrorCode
	}
	return quic.StreamErrorCode(wire.Reset)
}
