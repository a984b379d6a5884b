package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"

	"github.com/florete/florete/activation/commit"
	"github.com/florete/florete/agent/report"
	agentstatus "github.com/florete/florete/agent/status"
	"github.com/florete/florete/internal/hostreport"
)

// confirmWhenHealthy confirms a commit once the host is well; who goes back from it in time
// otherwise is another process.
func (s *syncer) confirmWhenHealthy(ctx context.Context, c commit.Change, id string, before []string) error {
	var missing error
	for {
		pending, err := s.State.PendingCommit()
		if err != nil {
			return err
		}
		if undone, _ := s.State.Undone(); undone != nil && undone.ID == id {
			fmt.Fprintf(os.Stderr, "flor: commit %s went back, since this host was not well in time: %v\n", id, missing)
			return exitWentBack
		}
		if pending == nil || pending.ID != id {
			return s.printConfirmed(id) // by somebody else
		}
		if missing = s.well(ctx, c, before); missing == nil {
			if missing = s.ConfirmHealthy(id); missing == nil {
				return s.printConfirmed(id)
			}
		}
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
			return fmt.Errorf("commit %s goes back unless it is confirmed: %w", id, ctx.Err())
		}
	}
}

// well is what is wrong with the host under the documents of a change, and was not before.
func (s *syncer) well(ctx context.Context, c commit.Change, before []string) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	if err := s.Healthy(ctx, c); err != nil {
		return err
	}
	for _, t := range s.troubles(ctx) {
		if !slices.Contains(before, t) {
			return errors.New(t)
		}
	}
	r, _, err := agentstatus.Fetch(ctx, s.socket)
	if err == nil && r.Manifest != nil && r.Manifest.Digest != c.Set.Document.Envelope.Digest {
		return errors.New("the forwarder does not have these documents yet")
	}
	return nil
}

// troubles returns what is wrong with units of the host and with its forwarder. Healthy judges needs:
// those of the new documents.
func (s *syncer) troubles(ctx context.Context) (all []string) {
	r := report.Collector{Config: report.Config{Instance: s.Instance, Layout: s.State, Socket: s.socket}}
	for _, p := range hostreport.Problems(r.Collect(ctx)) {
		if p.Kind != hostreport.OfNeed {
			all = append(all, p.Name)
		}
	}
	return all
}

// notifyReady reports to systemd, where that runs this process, that it is at work.
func notifyReady() { _, _ = daemon.SdNotify(false, daemon.SdNotifyReady) }
