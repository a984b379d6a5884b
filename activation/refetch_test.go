package activation

import (
	"errors"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"github.com/florete/florete/activation/event"
	"github.com/florete/florete/activation/needstate"
	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/internal/hostdir"
	. "github.com/florete/florete/tests/kit/activationtest"
)

// TestRefetch checks that touching a file requests a need again: soon, once, and at most every ten
// seconds.
func TestRefetch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost(t)
		h.config.Refetch = t.TempDir()
		h.touch("oidc-outline", time.Now().Add(-time.Hour))
		h.touch("cert-node", time.Now().Add(365*24*time.Hour)) // a clock that was wrong
		var granted atomic.Bool
		h.forge.SetRefuse(func(c Call) *hostapi.Error {
			if c.Need == "oidc-outline" && !granted.Load() {
				return hostapi.Errorf(hostapi.CodeNotGranted, "no grant")
			}
			return nil
		})
		stop := h.run()
		time.Sleep(10 * time.Minute)
		h.wantCalls(h.forge, "cert-node", 1)
		h.wantCalls(h.forge, "oidc-outline", 1)

		key := h.file("cert-node", hostdir.FileKey)
		h.touch("cert-node", time.Now())
		h.touch("oidc-outline", time.Now())
		granted.Store(true)
		time.Sleep(needstate.RefetchPoll + time.Second)
		h.wantCalls(h.forge, "cert-node", 2)
		h.wantCalls(h.forge, "oidc-outline", 2)
		if h.file("cert-node", hostdir.FileKey) == key {
			t.Error("the same key again")
		}
		for range 60 {
			h.touch("cert-node", time.Now())
			time.Sleep(time.Second)
		}
		if n := len(h.forge.Calls("cert-node")); n < 6 || n > 9 {
			t.Errorf("%d requests after another minute", n)
		}
		h.wantExit(stop(), event.ExitFulfilled)
	})
}

// TestRefetchLosesNoRequest checks that a request at any instant after the last attempt began is
// served, also in the same second, and although new documents make activation read the state from
// disk again.
func TestRefetchLosesNoRequest(t *testing.T) {
	for _, after := range []time.Duration{time.Nanosecond, 10 * time.Millisecond, 990 * time.Millisecond} {
		synctest.Test(t, func(t *testing.T) {
			h := newHost(t)
			h.config.Refetch = t.TempDir()
			taken, report := make(chan struct{}, 8), h.config.Report
			h.config.Report = func(e event.Event) {
				if report(e); e.Event == event.Documents {
					taken <- struct{}{}
				}
			}
			time.Sleep(123 * time.Millisecond) // so that state on disk has other times than this
			stop := h.run()
			time.Sleep(time.Minute)
			<-taken // those of the closure
			for serial := int64(2); serial < 8; serial++ {
				h.publish(serial, h.manifest)
				h.touch("config-documents", time.Now())
				select {
				case <-taken:
					h.wantInForce(serial)
				case <-time.After(2 * needstate.RefetchPoll):
					t.Fatalf("%s after the last documents: serial %d is not in force\n%s", after, serial, h.lines())
				}
				time.Sleep(after)
			}
			h.wantExit(stop(), event.ExitFulfilled)
		})
	}
}

// touch requests a need again, at a time.
func (h *host) touch(id string, at time.Time) {
	h.t.Helper()
	made := filepath.Join(h.t.TempDir(), id) // with its time before anybody sees it
	if err := errors.Join(os.WriteFile(made, nil, 0o644), os.Chtimes(made, at, at), os.Rename(made, filepath.Join(h.config.Refetch, id))); err != nil {
		h.t.Fatal(err)
	}
}

// TestRefetchFollowsNoLink checks that links are not followed, since their targets may block for
// ever.
func TestRefetchFollowsNoLink(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost(t)
		h.config.Refetch = t.TempDir()
		stop := h.run()
		time.Sleep(time.Minute)
		touched, link := filepath.Join(t.TempDir(), "touched"), filepath.Join(h.config.Refetch, "oidc-outline")
		if err := errors.Join(os.WriteFile(touched, nil, 0o644), os.Chtimes(touched, time.Now(), time.Now()), os.Symlink(touched, link)); err != nil {
			t.Fatal(err)
		}
		past := unix.NsecToTimespec(time.Now().Add(-time.Hour).UnixNano())
		if err := unix.UtimesNanoAt(unix.AT_FDCWD, link, []unix.Timespec{past, past}, unix.AT_SYMLINK_NOFOLLOW); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		h.wantExit(stop(), event.ExitFulfilled)
		h.wantCalls(h.forge, "oidc-outline", 1)
	})
}
