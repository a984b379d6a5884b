package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/florete/florete/internal/atomicfile"
	"github.com/florete/florete/internal/journal"
	"github.com/florete/florete/internal/secretfile"
	"github.com/florete/florete/internal/strictjson"
	"github.com/florete/florete/providers/sealedstore"
	"github.com/florete/florete/providers/server"
	"github.com/florete/florete/providers/store"
	"github.com/florete/florete/providers/store/sqlite"
)

// look is the interval at which a process compares the replicas in the policy with those in the
// keyring of the sealing key.
const look = 5 * time.Second

// opened returns the path of the file with the decrypted keys of a process's keyring. Root writes
// this file, because no provider process may read the SSH host key.
func opened(dir string) string { return filepath.Join(dir, "seal.ring") }

// openKey opens the sealing key of the state. If the state is in a file, the key is in a file
// beside it. If the state is in the shared store, the key is in the keyring.
func (p *process) openKey(ctx context.Context) (err error) {
	if p.fromFile() {
		p.key, err = sealedstore.Of(ctx, keyPath(p.dir()), p.store)
		return err
	}
	var failed error
	err = p.wait(ctx, "the sealing key", func() error {
		p.ring, failed = p.state().openRing(ctx, p.store, p.kind)
		if errors.Is(failed, errRoot) {
			return nil
		}
		return failed
	})
	if err == nil {
		err = failed
	}
	if err != nil {
		return err
	}
	if p.key, err = p.ring.Key(); err != nil {
		return err
	}
	return p.wait(ctx, "the store", func() error { return p.key.Bind(ctx, p.store) })
}

// errRoot is the error for a keyring that only root can open on this host.
var errRoot = errors.New("the sealing key was made or rotated by another replica: it is opened when this process is started again")

// openRing decrypts the keyring of a kind. If there is no keyring, it makes one.
func (s state) openRing(ctx context.Context, db store.Store, kind string) (keys sealedstore.RingKeys, err error) {
	dir, named := s.Dir(kind), s.named(kind)
	if err := s.whole(ctx, db, kind); err != nil {
		return keys, err
	}
	ring, err := sealedstore.ReadRing(ctx, db)
	if errors.Is(err, store.ErrNotFound) {
		if keys, err = sealedstore.MakeRing(ctx, db, named, sealedstore.Secret()); err == nil {
			err = save(dir, keys)
		}
		return keys, err
	}
	if err != nil {
		return keys, err
	}
	b, err := secretfile.ReadFile(opened(dir))
	if err == nil {
		err = strictjson.Decode(b, &keys)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return keys, fmt.Errorf("%s: %w", opened(dir), err)
	}
	if err == nil && keys.ID == ring.ID {
		return keys, nil
	}
	for _, d := range named.Replicas {
		if d.ID.Name() == s.policy.Host && ring.Replicas[d.ID] != d.SSHHostKey {
			return keys, fmt.Errorf("%s: this host is not among those that can open it: another replica lets it in", sealedstore.RingAt)
		}
	}
	pem, err := secretfile.ReadFile(s.hostKey())
	if errors.Is(err, fs.ErrPermission) {
		return keys, errRoot
	}
	if err != nil {
		return keys, fmt.Errorf("SSH host key: %w", err)
	}
	if keys, err = ring.Open(pem); err == nil {
		err = save(dir, keys)
	}
	return keys, err
}

// named returns the replicas of a kind's state that the policy in force names.
func (s state) named(kind string) sealedstore.RingReplicas {
	return sealedstore.RingReplicas{Replicas: s.policy.Store.Replicas[kind], Serial: s.serial}
}

func (s state) hostKey() string {
	if s.HostKey != "" {
		return s.HostKey
	}
	return "/etc/ssh/ssh_host_ed25519_key"
}

// save writes the keys of a keyring to the directory of a process. The file gets the same owner as
// the directory.
func save(dir string, keys sealedstore.RingKeys) error {
	b, err := json.Marshal(keys)
	if err != nil {
		return err
	}
	if err := atomicfile.File(opened(dir), b, 0o600); err != nil {
		return err
	}
	st, err := os.Stat(dir)
	if err != nil {
		return err
	}
	owner := st.Sys().(*syscall.Stat_t)
	if int(owner.Uid) == os.Geteuid() { // the file already has this owner
		return nil
	}
	return os.Chown(opened(dir), int(owner.Uid), int(owner.Gid))
}

// keepState admits the new replicas that the policy names, and rotates the sealing key when this is
// due. It returns an error when the process must restart with another key or store.
func (p *process) keepState(ctx context.Context) error {
	began := p.policies.Current().Store
	tick := time.NewTicker(look)
	defer tick.Stop()
	var failed journal.Once
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		if file, ok := p.store.(*sqlite.Store); ok {
			if err := file.Gone(); err != nil {
				return err
			}
		}
		if p.fromFile() {
			if err := p.moveOut(ctx, &failed); err != nil {
				return err
			}
			continue
		}
		now := p.policies.Current().Store
		if (now == nil) != (began == nil) || now != nil && (now.Kind != began.Kind || !reflect.DeepEqual(now.Endpoints, began.Endpoints)) {
			return errors.New("the policy names another store: this process is started again to use it")
		}
		if now == nil {
			continue
		}
		err := p.keepRing(ctx)
		if errors.Is(err, errRoot) {
			return err
		}
		if ctx.Err() == nil && failed.News(err) {
			p.log.Warn("the sealing key is not kept", "reason", err)
		}
	}
}

func (p *process) keepRing(ctx context.Context) error {
	s := p.state()
	named := s.named(p.kind)
	ring, err := sealedstore.ReadRing(ctx, p.store)
	if err != nil {
		return err
	}
	lifetime := time.Duration(s.policy.Store.KeyLifetime) * time.Second
	switch {
	case p.ring.ID != ring.ID:
		return errRoot
	case ring.Lacks(named):
		err = ring.Admit(ctx, p.store, p.ring, named)
		if err == nil {
			p.log.Info("let replicas in that the policy names", "replicas", len(named.Replicas))
		}
	case lifetime > 0 && time.Since(ring.Made) > lifetime:
		if err = s.rotate(ctx, p.store, p.kind, ring, p.ring); err == nil {
			return errRoot
		}
	}
	if errors.Is(err, store.ErrConflict) { // another replica has changed the ring first
		return nil
	}
	return err
}

// rotate makes a new sealing key for the replicas in the policy, and encrypts all values with it.
// First it encrypts values with older keys again with the former key. Such values exist if a
// replica wrote with an older key during a rotation, or if a rotation was interrupted.
func (s state) rotate(ctx context.Context, db store.Store, kind string, ring sealedstore.Ring, keys sealedstore.RingKeys) error {
	if err := s.reseal(ctx, db, kind, keys); err != nil && !errors.Is(err, sealedstore.ErrUnreadable) {
		return err
	}
	keys, err := ring.Rotate(ctx, db, keys, s.named(kind))
	if err != nil {
		return err
	}
	if err := save(s.Dir(kind), keys); err != nil {
		return err
	}
	return s.reseal(ctx, db, kind, keys)
}

// reseal encrypts all values that were sealed with older keys again with the newest key.
func (s state) reseal(ctx context.Context, db store.Store, kind string, keys sealedstore.RingKeys) error {
	key, err := keys.Key()
	if err != nil {
		return err
	}
	all := []func(context.Context) error{
		func(ctx context.Context) error { return key.Rebind(ctx, db) },
		func(ctx context.Context) error { return server.Reseal(ctx, db, key) },
		s.Section.Kind(server.Process{Instance: s.instance, Dir: s.Dir(kind), Store: db, Key: key}).Reseal,
	}
	var unreadable error
	for _, reseal := range all {
		if err := reseal(ctx); errors.Is(err, sealedstore.ErrUnreadable) {
			unreadable = err
		} else if err != nil {
			return err
		}
	}
	return unreadable
}

// withRing completes a command that root runs on the keyring of a kind's state.
func withRing(t *target, cmd *cobra.Command, run func(cmd *cobra.Command, s state, kind string, db store.Store) error) *cobra.Command {
	cmd.Args, cmd.ValidArgs = cobra.ExactArgs(1), kinds.Names()
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		loaded, err := t.load(args[0])
		if err != nil {
			return err
		}
		s, err := t.stateOf(loaded)
		if err != nil {
			return err
		}
		if s.policy.Store == nil {
			return run(cmd, s, args[0], nil)
		}
		db, err := s.openTree(args[0])
		if err != nil {
			return err
		}
		defer db.Close()
		return run(cmd, s, args[0], db)
	}
	return cmd
}

// unsealCmd returns the command that units run as root before their process starts.
func unsealCmd(t *target) *cobra.Command {
	return withRing(t, &cobra.Command{
		Use:   "unseal KIND",
		Short: "Decrypt the sealing key of a kind of need",
		Long: `Decrypt the sealing key of a kind of need before the provider of this kind starts. The provider
encrypts its secrets in the shared store with this key. systemd runs this command as root before
each start of the provider. You need not run it yourself.

The command decrypts the key with the SSH host key of this host, and writes it to a file for the
provider. If provider hosts share no store, the command does nothing.`,
	}, func(cmd *cobra.Command, s state, kind string, db store.Store) error {
		if db == nil {
			return nil
		}
		if _, err := s.openRing(cmd.Context(), db, kind); err != nil {
			fmt.Fprintf(cmd.ErrOrStderr(), "not opened yet, the process waits for it: %v\n", err)
		}
		return nil
	})
}

// rotateSealCmd returns the command that makes a new sealing key.
func rotateSealCmd(t *target) *cobra.Command {
	return withRing(t, &cobra.Command{
		Use:   "rotate-seal KIND",
		Short: "Replace the sealing key of a kind of need",
		Long: `Replace the sealing key of a kind of need, for example after you removed a provider host from
the cluster. Providers encrypt their secrets in the shared store with this key. Run this command
as root on one provider host. You cannot undo the command.

The command creates a new key for the provider hosts in the policy, and encrypts the secrets
again with this key. A provider host that was removed can then no longer decrypt these secrets.
Providers also replace the key by themselves, when it reaches the age in
providers.store.keyLifetime.`,
	}, func(cmd *cobra.Command, s state, kind string, db store.Store) error {
		if db == nil {
			return fmt.Errorf("policy of %s: no shared store: its sealing key is %s", s.policy.Host, keyPath(s.Dir(kind)))
		}
		ring, err := sealedstore.ReadRing(cmd.Context(), db)
		if err != nil {
			return fmt.Errorf("no keyring to rotate: %w", err)
		}
		keys, err := s.openRing(cmd.Context(), db, kind)
		if err != nil {
			return err
		}
		if err := s.rotate(cmd.Context(), db, kind, ring, keys); err != nil {
			return err
		}
		fmt.Fprintf(cmd.OutOrStdout(), "a new sealing key of kind %s, for %d replicas\n", kind, len(s.policy.Store.Replicas[kind]))
		return nil
	})
}
