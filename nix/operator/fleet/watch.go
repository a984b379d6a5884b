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

// Read returns the hosts in the flake, each with its newest report. It calls all providers for
// this.
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

// Watch prints the table of hosts to w again and again, as Text does, until ctx ends. Before each
// table, it clears the terminal by writing a control sequence to screen. When ctx ends, Watch
// returns nil. At the first other error, it returns that error.
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
