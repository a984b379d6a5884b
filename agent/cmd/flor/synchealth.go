package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"

	"github.com/florete/florete/activation/confirm"
	"github.com/florete/florete/agent/report"
	agentstatus "github.com/florete/florete/agent/status"
	"github.com/florete/florete/internal/hostreport"
)

// confirmWhenHealthy waits until the host is healthy and then confirms a change. If the change is
// not confirmed in time, a separate process undoes it.
func (s *syncer) confirmWhenHealthy(ctx context.Context, c confirm.Fetched, id string, before []string) error {
	var missing error
	for {
		pending, err := s.State.PendingChange()
		if err != nil {
			return err
		}
		if undone, _ := s.State.Undone(); undone != nil && undone.ID == id {
			fmt.Fprintf(os.Stderr, "flor: change %s went back, since this host was not well in time: %v\n", id, missing)
			return exitWentBack
		}
		if pending == nil || pending.ID != id {
			return s.printConfirmed(id) // another process has confirmed it
		}
		if missing = s.well(ctx, c, before); missing == nil {
			if missing = s.ConfirmHealthy(id); missing == nil {
				return s.printConfirmed(id)
			}
		}
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
			return fmt.Errorf("change %s goes back unless it is confirmed: %w", id, ctx.Err())
		}
	}
}

// well checks the health of the host after a change. It returns an error if the host has a problem
// that is not in the list before, which contains the problems from before the change.
func (s *syncer) well(ctx context.Context, c confirm.Fetched, before []string) error {
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

// troubles returns the problems of the host's systemd units and of its forwarder. It leaves out
// problems of needs, which Healthy reports because only Healthy uses the new documents.
func (s *syncer) troubles(ctx context.Context) (all []string) {
	r := report.Collector{Config: report.Config{Instance: s.Instance, Layout: s.State, Socket: s.socket}}
	for _, p := range hostreport.Problems(r.Collect(ctx)) {
		if p.Kind != hostreport.OfNeed {
			all = append(all, p.Name)
		}
	}
	return all
}

// notifyReady tells systemd that the service is ready. It does nothing if systemd did not start
// this process.
func notifyReady() { _, _ = daemon.SdNotify(false, daemon.SdNotifyReady) }
