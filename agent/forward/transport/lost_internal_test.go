package transport

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/florete/florete/agent/forward/usage"
)

// TestHandshakeOnALostPath checks that a stream that waits for a handshake through a relay gives it
// up when streams leave the path.
func TestHandshakeOnALostPath(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &tcpLink{make: func(ctx context.Context) (*tcpConn, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}}
		c := &conn{link: l, outer: &conn{}, usage: &usage.Conn{}}
		c.lost, c.lose = context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() {
			_, err := c.openUnlessLost(t.Context(), nil)
			ended <- err
		}()
		synctest.Wait()
		select {
		case err := <-ended:
			t.Fatalf("ended with %v while the path works", err)
		default:
		}
		c.lose()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("ended with %v, want context.Canceled", err)
		}
	})
}
