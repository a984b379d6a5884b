package forward

import (
	"cmp"
	"context"
	"io"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/florete/florete/agent/forward/handover"
	"github.com/florete/florete/agent/forward/telemetry"
	"github.com/florete/florete/internal/hostdir"
)

// Config is the configuration of a forwarder. A field that is zero has the default value that the
// comment of the field names, if any.
type Config struct {
	Layout     hostdir.Layout // state of the host, which activation maintains
	Socket     string         // path of the status socket; other sockets are beside it
	Metrics    string         // loopback address of the metrics socket; default none
	Traces     string         // URL of an OpenTelemetry collector; default none
	OneTraceIn int            // one of this many traces is sent; default 100
	Log        *slog.Logger   // default slog.Default()
	Access     io.Writer      // access log if standard error is not the journal; default os.Stderr
	Poll       time.Duration  // maximum interval between passes; default 10 s
	Grace      time.Duration  // time for open connections to end when stopping; default 2 s

	Unconfined error // reason why Landlock does not confine the process; shown in the status

	Starter *handover.Starter // set in a process that takes over; nil otherwise
}

func (c Config) withDefaults() Config {
	c.Log = cmp.Or(c.Log, slog.Default())
	if c.Access == nil {
		c.Access = os.Stderr
	}
	c.OneTraceIn = cmp.Or(c.OneTraceIn, 100)
	if c.Poll == 0 {
		c.Poll = 10 * time.Second
	}
	c.Grace = cmp.Or(c.Grace, 2*time.Second)
	return c
}

// Run runs a forwarder until ctx ends. It first waits for the manifest and the node's SVID, for as
// long as necessary. It returns an error only for a problem that waiting cannot solve.
func Run(ctx context.Context, c Config) error {
	f := &forwarder{Config: c.withDefaults(), metrics: &telemetry.Counters{}}
	return f.run(ctx)
}

// parallel runs functions concurrently. It returns when all of them have returned.
func parallel(all ...func()) {
	var wg sync.WaitGroup
	for _, f := range all {
		wg.Go(f)
	}
	wg.Wait()
}
