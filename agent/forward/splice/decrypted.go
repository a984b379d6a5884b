package splice

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"

	"github.com/quic-go/quic-go"

	"github.com/florete/florete/agent/forward/acl"
	"github.com/florete/florete/agent/forward/usage"
	"github.com/florete/florete/agent/forward/wire"
)

// Terminated contains the two ends between which Terminate forwards data: a TLS connection that
// this host decrypts, and the stream that carries its decrypted content. It also contains their
// limits and the counters for their traffic.
type Terminated struct {
	Local  *tls.Conn // made by TLSServer
	Stream wire.Stream
	// FromLocal, ToLocal, Read and Limits are as in Pair.
	FromLocal, ToLocal, Read *atomic.Int64
	Limits                   *acl.Share
}

// TLSServer returns the server side of a TLS connection with a caller that has connected over TCP.
// The result can be used with Terminate.
func TLSServer(tcp *net.TCPConn, config *tls.Config) *tls.Conn {
	return tls.Server(&endNoticing{TCPConn: tcp}, config)
}

// endNoticing is a TCP connection that notices its end. Package crypto/tls does not report whether
// the alert close_notify came before it.
type endNoticing struct {
	*net.TCPConn
	ended bool
}

func (c *endNoticing) Read(b []byte) (int, error) {
	n, err := c.TCPConn.Read(b)
	if errors.Is(err, io.EOF) {
		c.ended = true
	}
	return n, err
}

// maxRecord is the maximum content of a TLS record (RFC 8446, section 5.1).
const maxRecord = 16 << 10

// Terminate forwards data in both directions between the content of a TLS connection and a stream.
// It returns when both directions have ended, and has then closed both ends. It returns nil after a
// normal end, and otherwise the same errors as Start. A TLS connection that ends without the alert
// close_notify counts as reset, because its content may be incomplete.
func Terminate(ctx context.Context, t Terminated) (why error) {
	tcp := t.Local.NetConn().(*endNoticing).TCPConn
	defer tcp.Close()
	boundUnsent(tcp)
	aborted := make(chan struct{})
	var once sync.Once
	abort := func(err error) {
		once.Do(func() {
			why = err
			close(aborted)
			t.Stream.CancelWrite(quic.StreamErrorCode(wire.Reset))
			t.Stream.CancelRead(quic.StreamErrorCode(wire.Reset))
			Reset(tcp)
		})
	}
	defer context.AfterFunc(ctx, func() { abort(context.Cause(ctx)) })()
	// This notices STOP_SENDING and the end of the connection at once. Otherwise only the next
	// write would notice them.
	sending := t.Stream.Context()
	defer context.AfterFunc(sending, func() {
		if cause := context.Cause(sending); cause != quic.ErrStreamClosed {
			abort(cause)
		}
	})()
	var directions sync.WaitGroup
	for _, carry := range []func(<-chan struct{}) error{t.fromLocal, t.toLocal} {
		directions.Go(func() {
			if err := carry(aborted); err != nil {
				abort(err)
			}
		})
	}
	directions.Wait()
	once.Do(func() {}) // the deferred functions must not change the result
	return why
}

func (t Terminated) fromLocal(aborted <-chan struct{}) error {
	b := make([]byte, maxRecord)
	for {
		n, err := t.Local.Read(b[:min(len(b), t.Limits.Most())])
		if n > 0 {
			if _, err := t.Stream.Write(b[:n]); err != nil {
				return err
			}
			count(t.FromLocal, n)
		}
		tcp := t.Local.NetConn().(*endNoticing)
		if errors.Is(err, io.EOF) && !tcp.ended {
			t.Stream.Close()
			raw, err := tcp.SyscallConn()
			if err == nil {
				err = awaitReset(tcp.TCPConn, raw)
			}
			if err != nil {
				return ErrLocal
			}
			return nil
		}
		if err != nil {
			return ErrLocal
		}
		t.Limits.Wait(aborted, n)
	}
}

func (t Terminated) toLocal(aborted <-chan struct{}) error {
	var one [1]byte
	for {
		// Peek first, so that an idle stream holds no buffer.
		if _, err := t.Stream.Peek(one[:]); err != nil {
			if !errors.Is(err, io.EOF) {
				return err
			}
			// quic-go frees the stream only after a Read that returns the end.
			_, _ = t.Stream.Read(one[:])
			if t.Local.CloseWrite() != nil || t.Local.NetConn().(*endNoticing).CloseWrite() != nil {
				return ErrLocal
			}
			return nil
		}
		b := usage.GetBuffer()
		n, err := t.Stream.Read(b[:min(len(b), t.Limits.Most())])
		count(t.Read, n)
		if n > 0 {
			if _, werr := t.Local.Write(b[:n]); werr != nil {
				err = ErrLocal
			} else {
				count(t.ToLocal, n)
			}
		}
		usage.PutBuffer(b)
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		t.Limits.Wait(aborted, n)
	}
}
