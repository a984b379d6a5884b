package tlog

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/transparency-dev/tessera"
	"github.com/transparency-dev/tessera/api/layout"
	"github.com/transparency-dev/tessera/storage/posix"
	"golang.org/x/sync/errgroup"
)

const (
	// gather is the time for which rows wait to be appended together. Each append costs a few
	// small, flushed files.
	gather = time.Second

	// publish is the delay of the checkpoint after an append.
	publish = 250 * time.Millisecond

	// most is the largest number of rows that are appended together.
	most = 4096

	// closeAfter is the time after the last row at which Tessera is closed, because it looks at its
	// files twenty times a second. tidy is the interval at which it removes partial files that are
	// complete by now.
	closeAfter = 12 * time.Second
	tidy       = 5 * time.Second
)

// run appends rows until ctx ends or an error occurs. After an error, the log is read again,
// because it may contain rows whose append had begun.
func (l *Log) run(ctx context.Context) error {
	if err := os.MkdirAll(l.Config.Dir, 0o700); err != nil {
		return err
	}
	unlock, err := l.lock()
	if err != nil {
		return err
	}
	defer unlock()
	a := &appender{Log: l}
	if err := a.open(ctx); err != nil {
		return err
	}
	defer a.close()
	restored, err := l.restoredAt(ctx)
	if err != nil {
		return err
	}
	at, err := a.resume(ctx)
	if err != nil {
		return err
	}
	at.restored = restored
	rows := make(chan row, most)
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return l.follow(ctx, at, rows) })
	g.Go(func() error { return a.appendAll(ctx, rows) })
	g.Go(func() error { return l.compareEach(ctx) })
	return g.Wait()
}

// appender appends rows to the log. Tessera, which it uses, has goroutines. Therefore it is closed
// while there is nothing to append.
type appender struct {
	*Log
	add      tessera.AddFn // nil while it is closed
	shutdown func(context.Context) error
	cancel   context.CancelFunc
	size     uint64 // as integrated
}

// open starts Tessera and reads the size of the log.
func (a *appender) open(ctx context.Context) error {
	signer, err := a.signer()
	if err != nil {
		return err
	}
	a.unstick()
	driver, err := posix.New(ctx, posix.Config{Path: a.Config.Dir})
	if err != nil {
		return err
	}
	inner, cancel := context.WithCancel(context.WithoutCancel(ctx))
	t, shutdown, r, err := tessera.NewAppender(inner, driver, tessera.NewAppendOptions().
		WithCheckpointSigner(signer).WithBatching(most, 10*time.Millisecond).
		WithCheckpointInterval(publish).WithGarbageCollectionInterval(tidy).WithShutdownTimeout(time.Second))
	if err != nil {
		cancel()
		return err
	}
	a.add, a.shutdown, a.cancel = t.Add, shutdown, cancel
	if a.size, err = r.IntegratedSize(ctx); err != nil {
		a.close()
		return err
	}
	a.integrated.Store(a.size)
	return nil
}

// unstick ensures that a new checkpoint is written after the clock was set back. Tessera uses the
// age of the checkpoint's file, and would wait if that file is from the future.
func (l *Log) unstick() {
	path, now := filepath.Join(l.Config.Dir, layout.CheckpointPath), time.Now()
	if fi, err := os.Stat(path); err == nil && fi.ModTime().After(now) {
		_ = os.Chtimes(path, now, now) // else the next checkpoint comes later
	}
}

// close waits for the checkpoint of all appended rows.
func (a *appender) close() {
	if a.add == nil {
		return
	}
	a.add = nil
	if err := a.shutdown(context.Background()); err != nil {
		a.Logger.Warn("the newest rows of the audit log have no checkpoint until the next start", "error", err)
	}
	a.cancel()
}

// append appends leaves in order. It returns when the leaves are on disk.
func (a *appender) append(ctx context.Context, leaves []Leaf) error {
	if size := a.size; a.add == nil {
		if err := a.open(ctx); err != nil {
			return err
		}
		if a.size != size {
			return fmt.Errorf("the log has %d rows, want %d: something else appends to it", a.size, size)
		}
	}
	a.unstick()
	futures := make([]tessera.IndexFuture, len(leaves))
	for i, leaf := range leaves {
		futures[i] = a.add(ctx, tessera.NewEntry([]byte(leaf.String())))
	}
	var failed error
	for i, future := range futures {
		index, err := future()
		if err == nil && index.Index != a.size+uint64(i) {
			err = fmt.Errorf("%s is row %d of the log, want %d: something else appends to it", leaves[i].Key, index.Index, a.size+uint64(i))
		}
		failed = errors.Join(failed, err)
	}
	if failed != nil {
		return failed
	}
	a.size += uint64(len(leaves))
	a.integrated.Store(a.size)
	return nil
}

// appendAll appends rows in groups, as they arrive.
func (a *appender) appendAll(ctx context.Context, rows <-chan row) error {
	resting := time.NewTimer(a.closeAfter)
	defer resting.Stop()
	for {
		var leaves []Leaf
		var upTo int64
		take := func(r row) {
			if r.Key != "" {
				leaves = append(leaves, r.Leaf)
			}
			upTo = r.upTo
		}
		select {
		case r := <-rows:
			take(r)
		case <-resting.C:
			a.close()
			continue
		case <-ctx.Done():
			return nil
		}
		over := time.After(gather)
		for waiting := true; waiting && len(leaves) < most; {
			select {
			case r := <-rows:
				take(r)
			case <-over:
				waiting = false
			case <-ctx.Done():
				waiting = false
			}
		}
		if len(leaves) > 0 {
			// Rows that were read are appended even if the process ends.
			if err := a.append(context.WithoutCancel(ctx), leaves); err != nil {
				return err
			}
			resting.Reset(a.closeAfter)
		}
		a.appended.Store(upTo)
	}
}
