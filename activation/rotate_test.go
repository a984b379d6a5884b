package activation

import (
	"errors"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"florete"
	. "florete/activation/activationtest"
	"florete/providers/api"

	"golang.org/x/sys/unix"
)

// A touched file asks for a need again: soon, once, and no more than every ten seconds.
func TestRotate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost(t)
		h.config.Rotate = t.TempDir()
		touch := func(id string, at time.Time) {
			path := filepath.Join(h.config.Rotate, id)
			if err := os.WriteFile(path, nil, 0o644); err != nil {
				t.Fatal(err)
			}
			if err := os.Chtimes(path, at, at); err != nil {
				t.Fatal(err)
			}
		}
		touch("oidc-outline", time.Now().Add(-time.Hour))
		touch("cert-node", time.Now().Add(365*24*time.Hour)) // a clock that was wrong
		var granted atomic.Bool
		h.forge.SetRefuse(func(c Call) *api.Error {
			if c.Need == "oidc-outline" && !granted.Load() {
				return api.Errorf(api.Denied, api.CodeNotGranted, "no grant")
			}
			return nil
		})
		stop := h.run()
		time.Sleep(10 * time.Minute)
		h.wantCalls(h.forge, "cert-node", 1)
		h.wantCalls(h.forge, "oidc-outline", 1)

		key := h.file("cert-node", florete.FileKey)
		touch("cert-node", time.Now())
		touch("oidc-outline", time.Now())
		granted.Store(true)
		time.Sleep(heed + time.Second)
		h.wantCalls(h.forge, "cert-node", 2)
		h.wantCalls(h.forge, "oidc-outline", 2)
		if h.file("cert-node", florete.FileKey) == key {
			t.Error("the same key again")
		}
		for range 60 {
			touch("cert-node", time.Now())
			time.Sleep(time.Second)
		}
		if n := len(h.forge.Calls("cert-node")); n < 6 || n > 9 {
			t.Errorf("%d requests after another minute", n)
		}
		h.wantExit(stop(), ExitFulfilled)
	})
}

// Where a link leads is not looked at: it may be where looking takes for ever.
func TestRotateFollowsNoLink(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost(t)
		h.config.Rotate = t.TempDir()
		stop := h.run()
		time.Sleep(time.Minute)
		touched, link := filepath.Join(t.TempDir(), "touched"), filepath.Join(h.config.Rotate, "oidc-outline")
		if err := errors.Join(os.WriteFile(touched, nil, 0o644), os.Chtimes(touched, time.Now(), time.Now()), os.Symlink(touched, link)); err != nil {
			t.Fatal(err)
		}
		past := unix.NsecToTimespec(time.Now().Add(-time.Hour).UnixNano())
		if err := unix.UtimesNanoAt(unix.AT_FDCWD, link, []unix.Timespec{past, past}, unix.AT_SYMLINK_NOFOLLOW); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		h.wantExit(stop(), ExitFulfilled)
		h.wantCalls(h.forge, "oidc-outline", 1)
	})
}
