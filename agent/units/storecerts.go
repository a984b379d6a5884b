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

// quiet is the time for which no file may change before units are restarted, because copying
// several files takes a moment.
const quiet = 2 * time.Second

// restarting bounds the restart of one unit. A member of a store without a majority is ready only
// after another member has started.
const restarting = time.Minute

// StoreCertificates describes the certificate files of the shared store and the units that use
// them. systemd copies the files as credentials when it starts a unit, so a running unit does not
// see new files.
type StoreCertificates struct {
	Dir   string   // directory of the certificates
	Units []string // restarted in this order, one at a time

	Started func(ctx context.Context, unit string) (time.Time, error) // see units.Started
	Restart func(ctx context.Context, unit string) error
	Log     *slog.Logger
}

// ApplyStoreCertificates restarts each unit that was started before an operator replaced a file. It
// waits until the files are complete, and returns when no unit is left to restart. If a certificate
// does not belong to its key, it returns an error and restarts nothing; running units keep the old
// files.
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
	// A unit that was started in between may have copied only some of the new files.
	if err != nil || started.IsZero() || !started.Before(changed.Add(quiet)) {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, restarting)
	defer cancel()
	c.Log.Info("restarting a unit, which has former certificates of the store", "unit", unit)
	return c.Restart(ctx, unit)
}

// settled waits until no file has changed for a moment and returns the time of the last change. It
// uses the change time of the kernel, because a copy may keep the modification time of its
// original.
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

// StoreCertificatesChanged returns the time of the last change of a file in a directory, zero if
// there is none.
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

// CheckStorePairs returns an error if a certificate in a directory does not belong to its key.
// Missing pairs are ignored.
func CheckStorePairs(dir string) error {
	for _, name := range []string{"client", "member"} {
		crt, key := filepath.Join(dir, name+".crt"), filepath.Join(dir, name+".key")
		if _, err := tls.LoadX509KeyPair(crt, key); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("%s and %s: %w, want both as florctl store issue wrote them: copy its whole directory", crt, key, err)
		}
	}
	return nil
}
