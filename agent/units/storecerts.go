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

// quiet is for how long no file may change before units restart: a copy of several files
// takes a moment.
const quiet = 2 * time.Second

// restarting bounds the restart of one unit. The member of a store without a majority is
// ready only when another member has come.
const restarting = time.Minute

// StoreCertificates are the files of the store which provider hosts share, and the units that use them.
// systemd copies the files when it starts a unit, as credentials, so a unit that runs does not see new ones.
type StoreCertificates struct {
	Dir   string   // of the certificates
	Units []string // restarted in this order, one at a time

	Started func(ctx context.Context, unit string) (time.Time, error) // as units.Started
	Restart func(ctx context.Context, unit string) error
	Log     *slog.Logger
}

// ApplyStoreCertificates restarts each unit that started before an operator replaced a file. It waits until the files are
// whole, and returns when nothing is left to do. A certificate without its key is an error,
// and nothing restarts: what runs goes on with what it has.
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
	// One that started in between may have copied only some of the files.
	if err != nil || started.IsZero() || !started.Before(changed.Add(quiet)) {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, restarting)
	defer cancel()
	c.Log.Info("restarting a unit, which has former certificates of the store", "unit", unit)
	return c.Restart(ctx, unit)
}

// settled returns when a file last changed, once that is a moment ago. It looks at what the
// kernel notes of each change, since a copy may keep the time of its original.
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

// StoreCertificatesChanged returns when a file in a directory last changed: zero where there is none.
func StoreCertificatesChanged(dir string) (newest time.Time, err error) {
	all, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return newest, nil
	}
	for _, e := range all {
		var st unix.Stat_t
		if unix.Stat(filepath.Join(dir, e.Name()), &st) != nil {
			continue // it was renamed since
		}
		if at := time.Unix(st.Ctim.Unix()); at.After(newest) {
			newest = at
		}
	}
	return newest, err
}

// CheckStorePairs returns an error where a certificate in a directory does not go with its key. A pair
// that is not there is none.
func CheckStorePairs(dir string) error {
	for _, name := range []string{"client", "member"} {
		crt, key := filepath.Join(dir, name+".crt"), filepath.Join(dir, name+".key")
		if _, err := tls.LoadX509KeyPair(crt, key); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("%s and %s: %w, want both as florctl store issue wrote them: copy its whole directory", crt, key, err)
		}
	}
	return nil
}
