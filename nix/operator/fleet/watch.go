package fleet

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/florete/florete/internal/hostreport"
	"github.com/florete/florete/nix/operator/client"
	"github.com/florete/florete/nix/operator/compile"
)

// again is the interval at which Watch requests reports. Hosts look for changes to report every ten
// seconds.
const again = 5 * time.Second

// Read returns the hosts in the flake, each with its newest report from all providers.
func Read(ctx context.Context, s compile.Snapshot, providers client.Providers) ([]Host, error) {
	stopped := make(chan map[string]hostreport.Problem, 1)
	go func() { stopped <- providers.Stopped(ctx) }()
	reports, waiting, err := providers.Hosts(ctx)
	seen := Seen{reports, waiting, <-stopped}
	if err != nil {
		return nil, err
	}
	return Join(s, seen, time.Now())
}

// Watch prints the hosts repeatedly, as Text does, until ctx ends. Each time, it first writes the
// control sequence that clears a terminal to the last writer. It returns nil when ctx ends, and
// otherwise the first error.
func Watch(ctx context.Context, s compile.Snapshot, providers client.Providers, w, screen io.Writer) error {
	for {
		hosts, err := Read(ctx, s, providers)
		if ctx.Err() != nil {
			return nil
		}
		fmt.Fprint(screen, "\x1b[H\x1b[2J")
		if err == nil {
			err = Text(w, hosts, time.Now())
		}
		if err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(again):
		}
	}
}
