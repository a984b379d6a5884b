package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/florete/florete/activation/confirm"
)

// switchSystem switches a NixOS host to the system that its newest manifest names. The switch is
// undone unless it is confirmed. The system is fetched completely before anything changes.
func (s *syncer) switchSystem(ctx context.Context, change confirm.Fetched) error {
	head := change.Set.Document.Envelope
	to := head.Closure
	if to == "" {
		return fmt.Errorf("manifest %d of %s names no system: florctl publish --closure %s=PATH", head.Serial, head.Host, head.Host)
	}
	running, err := filepath.EvalSymlinks(confirm.NixOSCurrent)
	if err != nil {
		return fmt.Errorf("--system: %w: this is no NixOS host", err)
	}
	if running == to || s.dryRun {
		text := "nothing changes: " + to + " is in force"
		if running != to {
			text = running + " would be replaced by " + to
		}
		_, err := fmt.Fprintf(s.out, "provider %s: %s\n", change.Provider, text)
		return err
	}
	if err := command(ctx, "nix-store", "--realise", to); err != nil {
		return err
	}
	n := confirm.Installation{Instance: s.Instance, State: s.State, Dir: to, Action: "switch", Arm: func(ctx context.Context) error { return startUndo(ctx, s.Instance, s.State) }}
	c, err := n.Begin(ctx, s.timeout)
	if c == nil {
		return errors.Join(err, fmt.Errorf("%s: no change began, so nothing is switched: flor status", to))
	}
	s.printChange(synced{Provider: change.Provider, Change: c})
	if err := command(ctx, "nix-env", "--profile", confirm.NixOSProfile, "--set", to); err != nil {
		return err
	}
	// The switch runs in its own unit, so that it continues if the user's login ends.
	return command(ctx, "systemd-run", "--quiet", "--collect", "--wait", "--pipe", "--unit=sync-"+s.Instance.String(), filepath.Join(to, "bin/switch-to-configuration"), "switch")
}

// command runs a program, such as nix-store, and shows its output to the user of flor sync.
func command(ctx context.Context, name string, args ...string) error {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s %s: %w", name, strings.Join(args, " "), err)
	}
	return nil
}
