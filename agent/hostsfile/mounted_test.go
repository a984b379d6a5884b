package hostsfile

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/florete/florete/tests/kit/agenttest"
)

// withMounts calls f on a thread in a new mount namespace. The mounts that f makes end with the
// thread.
func withMounts(t *testing.T, f func()) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("NOT RUN: needs root, for a mount namespace")
	}
	var err error
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // never unlocked, so that the thread ends with this goroutine
		err = unix.Unshare(unix.CLONE_NEWNS | unix.CLONE_FS)
		if err == nil {
			err = unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, "")
		}
		if err == nil {
			f()
		}
	}()
	<-done
	if err != nil {
		t.Skipf("NOT RUN: no mounts here: %v", err)
	}
}

func mount(t *testing.T, source, target, kind string, flags uintptr, data string) {
	t.Helper()
	if err := unix.Mount(source, target, kind, flags, data); err != nil {
		t.Errorf("mount %s: %v", target, err)
	}
}

// TestMounted checks a hosts(5) file that is itself a mount, as in containers. The file is
// overwritten in place. If it cannot be written or its file system is full, it stays unchanged, and
// no update is reported.
func TestMounted(t *testing.T) {
	one, none := block("", reach("service/wiki")), ""
	withMounts(t, func() {
		c := Config{Hosts: file(t, others+"\n")}
		mount(t, c.Hosts, c.Hosts, "", unix.MS_BIND, "")
		for _, b := range []string{one, none} {
			if changed, err := c.rewrite(b); !changed || err != nil || read(t, c.Hosts) != others+"\n"+b {
				t.Errorf("a mount: changed %v, %v, file\n%s", changed, err, read(t, c.Hosts))
			}
		}
		mount(t, "", c.Hosts, "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY, "")
		changed, err := c.rewrite(one)
		if changed || err == nil || !strings.HasSuffix(err.Error(), ": see that it can be written to, or have what makes it list the names") {
			t.Errorf("a mount to read: changed %v, %v", changed, err)
		}
		if got := read(t, c.Hosts); got != others+"\n" {
			t.Errorf("it has\n%s", got)
		}

		dir := t.TempDir()
		mount(t, "tmpfs", dir, "tmpfs", 0, "size=16k")
		c.Hosts = filepath.Join(dir, "hosts")
		if err := os.WriteFile(c.Hosts, []byte(others+"\n"), 0o644); err != nil {
			t.Error(err)
		}
		_ = os.WriteFile(filepath.Join(dir, "more"), make([]byte, 64<<10), 0o600) // until the file system is full
		if changed, err := c.rewrite(one); changed || err == nil || read(t, c.Hosts) != others+"\n" {
			t.Errorf("a full disk: changed %v, %v, file\n%s", changed, err, read(t, c.Hosts))
		}
		mount(t, c.Hosts, c.Hosts, "", unix.MS_BIND, "")
		long := block("", reach(strings.Fields(strings.Repeat("service/wiki ", 200))...))
		if changed, err := c.rewrite(long); changed || err == nil || read(t, c.Hosts) != others+"\n" {
			t.Errorf("a mount that is full: changed %v, %v, file\n%s", changed, err, read(t, c.Hosts))
		}
	})
}

// TestRunReadOnly checks that a failed update is never reported as done.
func TestRunReadOnly(t *testing.T) {
	cluster := agenttest.NewCluster(t, "127.0.0.1:1")
	withMounts(t, func() {
		path := file(t, others+"\n")
		mount(t, path, path, "", unix.MS_BIND, "")
		mount(t, "", path, "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY, "")
		var log bytes.Buffer
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := Run(ctx, Config{Layout: cluster.Laptop.Layout, Hosts: path, Log: slog.New(slog.NewTextHandler(&log, nil))}); err != nil {
			t.Error(err)
		}
		if strings.Contains(log.String(), "up to date") || strings.Count(log.String(), "names are not kept") != 1 {
			t.Errorf("said\n%s", &log)
		}
	})
}
