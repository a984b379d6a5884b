package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/florete/florete/providers/move"
	"github.com/florete/florete/providers/settings"
)

// migrateCmd returns the command that waits until processes have moved their states, for example to
// the shared store.
func migrateCmd(t *target) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "migrate",
		Short: "Wait until this host has moved its state to etcd",
		Long: `Wait until the providers on this host have moved their state from files to the shared etcd
store. Run this command as root on a provider host, or run florctl state migrate on your own
machine. The host must be in providers.store.from in the topology. For each kind of need, the
command prints where the state is now.

The providers move their state by themselves, and answer requests meanwhile. You can interrupt
the command and run it again.`,
	}
	timeout := cmd.Flags().Duration("timeout", 10*time.Minute, "time after which the command gives up")
	return t.withSettings("", cmd, func(cmd *cobra.Command, s *settings.Settings) error {
		policy, err := readPolicy(s)
		if err != nil {
			return err
		}
		if policy.Store == nil {
			return fmt.Errorf("policy of %s: names no store: write providers.store, with from = [ %q ], and deploy this host", policy.Host, policy.Host)
		}
		ctx, cancel := context.WithTimeout(cmd.Context(), *timeout)
		defer cancel()
		st, err := t.stateOf(s)
		if err != nil {
			return err
		}
		for _, kind := range slices.Sorted(maps.Keys(policy.Provider)) {
			what, err := st.moved(ctx, kind)
			if err != nil {
				return fmt.Errorf("kind %q: %w", kind, err)
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%s: %s\n", kind, what)
		}
		return nil
	})
}

// moved waits until the state of a kind has moved, and returns where the state is.
func (s state) moved(ctx context.Context, kind string) (string, error) {
	tree, err := s.openTree(kind)
	if err != nil {
		return "", err
	}
	defer tree.Close()
	for {
		file, mark, err := s.openFile(ctx, kind)
		if file != nil {
			file.Close()
		}
		var there move.Mark
		if err == nil {
			there, err = move.Of(ctx, tree)
		}
		from := s.policy.Store.From[kind]
		switch {
		case err == nil && there.Host != "" && (file == nil || mark.Host != ""):
			return fmt.Sprintf("in the store, from %s since %s", there.Host, there.Time.Format(time.RFC3339)), nil
		case err == nil && file == nil && from == "":
			return "nothing to move", nil
		case err == nil && file != nil && mark.Host == "" && from != s.policy.Host:
			return "", fmt.Errorf("%s: stays where it is: add this host to providers.store.from; to leave it behind, %s", storePath(s.Dir(kind)), s.aside(kind))
		}
		select {
		case <-ctx.Done():
			if err == nil {
				err = ctx.Err()
			}
			return "", fmt.Errorf("has not moved yet: %w: journalctl -u %s has why", err, s.instance.Unit("provider-"+kind+".service"))
		case <-time.After(time.Second):
		}
	}
}
