package fleet

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/florete/florete/nix/operator/client"
	"github.com/florete/florete/nix/operator/compile"
)

// again is how often a watch requests the reports: hosts look for changes every ten seconds.
const again = 5 * time.Second

// Read joins the hosts of the flake with the newest report of each that any of the providers has.
func Read(ctx context.Context, s compile.Snapshot, providers client.Providers) ([]Host, error) {
	newest, err := providers.Reports(ctx)
	if err != nil {
		return nil, err
	}
	return Join(s, newest, time.Now())
}

// Watch prints the hosts again and again, on a screen that it clears, until the context ends.
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
