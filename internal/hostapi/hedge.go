package hostapi

import (
	"context"
	"crypto/tls"
	"time"

	"github.com/florete/florete/internal/document"
)

// hedgeAfter is the time that a provider may be silent before the next one is tried in parallel.
const hedgeAfter = 2 * time.Second

// hedge connects to the provider and, if no connection is made for a while, to the others in
// parallel. It uses the first connection that succeeds and returns a client for that provider. A
// provider that fails earlier is not replaced, because the caller knows which to try next; but if
// it is full, the next one is tried at once.
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
