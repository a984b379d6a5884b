package hostapi

import (
	"context"
	"crypto/tls"
	"time"

	"github.com/florete/florete/internal/document"
)

// hedgeAfter is the time for which a provider may be silent before the client tries the next
// provider in parallel.
const hedgeAfter = 2 * time.Second

// hedge connects to the provider. If no connection is made for a while, it connects to the other
// providers in parallel, and uses the first connection that succeeds. It returns a client for the
// provider that was reached. If a provider fails early, hedge does not try the next one, because
// the caller knows which to try. If a provider has no room for more hosts, hedge tries the next one
// at once.
func (c *Client) hedge(ctx context.Context, svid *tls.Certificate) (*Client, way, error) {
	if len(c.Others) == 0 {
		w, err := c.dial(ctx, svid)
		return c, w, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	type result struct {
		client *Client
		way    way
		err    error
	}
	results := make(chan result)
	left := append([]document.Provider{c.Provider}, c.Others...)
	running := 0
	begin := func() {
		of := *c
		of.Provider, left = left[0], left[1:]
		running++
		go func() {
			w, err := of.dial(ctx, svid)
			results <- result{&of, w, err}
		}()
	}
	begin()
	next := time.NewTicker(hedgeAfter)
	defer next.Stop()
	var won, failed result
	for running > 0 {
		select {
		case <-next.C:
			if len(left) > 0 && won.client == nil {
				begin()
			}
		case r := <-results:
			running--
			switch {
			case r.err != nil:
				if failed.err == nil {
					failed = r
				}
				if won.client == nil && len(left) > 0 && AsError(r.err).Code == CodeFull.Name {
					begin()
				}
			case won.client == nil:
				won = r
				cancel()
			default:
				r.way.conn.NetConn().Close()
			}
		}
	}
	if won.client == nil {
		return nil, way{}, failed.err
	}
	return won.client, won.way, nil
}
