package forward

import (
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

// Config locates a forwarder's files.
type Config struct {
	Layout     hostdir.Layout // what activation keeps
	Socket     string         // of status; others are beside it
	Metrics    string         // loopback address where they are served too; default none
	Traces     string         // URL of a collector of OpenTelemetry traces; default none
	OneTraceIn int            // default 100
	Log        *slog.Logger   // default slog.Default()
	Access     io.Writer      // access log, where standard error is not the journal; default os.Stderr
	Poll       time.Duration  // reads the disk at least this often; default 10 s
	Grace      time.Duration  // for live connections when stopping; default 2 s

	Unconfined error // why the kernel lets the process open other files, for status

	Starter *handover.Starter // of a process that takes over; nil otherwise
}

func (c Config) withDefaults() Config {
	if c.Log == nil {
		c.Log = slog.Default()
	}
	if c.Access == nil {
		c.Access = os.Stderr
	}
	if c.OneTraceIn == 0 {
		c.OneTraceIn = 100
	}
	if c.Poll == 0 {
		c.Poll = 10 * time.Second
	}
	if c.Grace == 0 {
		c.Grace = 2 * time.Second
	}
	return c
}

// Run forwards until ctx ends. It waits for the manifest and the node's identity
// as long as it takes. The error is one that waiting cannot mend.
func Run(ctx context.Context, c Config) error {
	f := &forwarder{Config: c.withDefaults(), metrics: &telemetry.Counters{}}
	return f.run(ctx)
}

// parallel runs all at once and returns when all have.
func parallel(all ...func()) {
	var wg sync.WaitGroup
	for _, f := range all {
		wg.Go(f)
	}
	wg.Wait()
}
