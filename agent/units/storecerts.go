package units

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// quiet is the time without a change of a file after which the files count as complete. An operator
// needs a moment to copy several files.
const quiet = 2 * time.Second

// restarting is the time limit for restarting one unit. It is long, because a member of etcd
// without a majority is ready only after another member has started.
const restarting = time.Minute

// StoreCertificates describes the certificate files for etcd, and the units that use them. systemd
// copies the files as credentials when it starts a unit, so a running unit uses new files only
// after a restart.
type StoreCertificates struct {
	Dir   string   // directory that contains the certificates
	Units []string // units to restart, one at a time in this order

	Started func(ctx context.Context, unit string) (time.Time, error) // see the function Started
	Restart func(ctx context.Context, unit string) error
	Log     *slog.Logger
}

// ApplyStoreCertificates restarts the units that still use older certificates for etcd, after an
// operator has replaced the files. It waits until the files no longer change, and then restarts the
// units one at a time. If a certificate does not belong to its key, it returns an error and
// restarts nothing.
func ApplyStoreCertificates(ctx context.Context, c StoreCertificates) error {
	for done := (time.Time{}); ; {
		changed, err := c.settled(ctx)
		if err != nil || !changed.After(done) {
			return err
		}
		if err := CheckStorePairs(c.Dir); err != nil {
			return err
		}
		var failed []error
		for _, unit := range c.Units {
			if err := c.apply(ctx, unit, changed); err != nil {
				failed = append(failed, err)
			}
		}
		if failed != nil {
			return errors.Join(failed...)
		}
		done = changed
	}
}

func (c StoreCertificates) apply(ctx context.Context, unit string, changed time.Time) error {
	started, err := c.Started(ctx, unit)
	// A unit that was started while files were copied may have only some of the new files.
	if err != nil || started.IsZero() || !started.Before(changed.Add(quiet)) {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, restarting)
	defer cancel()
	c.Log.Info("restarting a unit, which has former certificates of the store", "unit", unit)
	return c.Restart(ctx, unit)
}

// settled waits until no file has changed for a moment, and returns the time of the last change. It
// uses the change time that the kernel sets, because a copied file may keep the modification time
// of the original.
func (c StoreCertificates) settled(ctx context.Context) (time.Time, error) {
	for {
		newest, err := StoreCertificatesChanged(c.Dir)
		if err != nil {
			return newest, err
		}
		left := min(time.Until(newest.Add(quiet)), quiet)
		if left <= 0 {
			return newest, nil
		}
		select {
		case <-time.After(left):
		case <-ctx.Done():
			return newest, ctx.Err()
		}
	}
}

// StoreCertificatesChanged returns the time of the last change of any file in a directory. It
// returns the zero time if the directory is empty or does not exist.
func StoreCertificatesChanged(dir string) (newest time.Time, err error) {
	all, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return newest, nil
	}
	for _, e := range all {
		var st unix.Stat_t
		if unix.Stat(filepath.Join(dir, e.Name()), &st) != nil {
			continue // the file was renamed in the meantime
		}
		if at := time.Unix(st.Ctim.Unix()); at.After(newest) {
			newest = at
		}
	}
	return newest, err
}

// CheckStorePairs returns an error if a certificate in a directory does not belong to its key. It
// ignores a pair of which a file is missing.
func CheckStorePairs(dir string) error {
	for _, name := range []string{"client", "member"} {
		crt, key := filepath.Join(dir, name+".crt"), filepath.Join(dir, name+".key")
		if _, err := tls.LoadX509KeyPair(crt, key); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("%s and %s: %w, want both as florctl store issue wrote them: copy its whole directory", crt, key, err)
		}
	}
	return nil
}
