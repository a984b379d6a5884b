// Package versions runs releases of Florete beside each other: hosts, providers and
// forwarders of the first one that has formats, and those of this source. What lies on a
// host or a provider when its programs are exchanged, either way, is part of it.
package versions

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/florete/florete/tests/kit"
	"github.com/florete/florete/tests/local"
)

// oldest is the commit whose release still works with this one. Documents and requests have
// had formats since.
const oldest = "2a8f529b6b70a37b4ec117b0a24b8b50103cb256"

// release is a source and what was built of it.
type release struct {
	repo, bin string
	former    bool // the oldest
}

// operator has the programs of the release, and works in a directory.
func (r release) operator(work string) local.Operator {
	return local.Operator{Repo: r.repo, Bin: r.bin, Work: work, Prints: r.former}
}

// use has a host run the programs of a release from its next start on, and a provider host
// read the settings that they read.
func (r release) use(t *testing.T, h *local.Host, settings map[string]any) {
	t.Helper()
	h.Bin, h.Silent = r.bin, r.former
	if settings == nil {
		return
	}
	if r.former {
		settings["policy"], settings["needs"] = h.Closure(), string(h.Layout().Need(""))
		settings["config"] = map[string]string{"artifacts": "published"}
	} else {
		settings["activation"] = string(h.Layout())
	}
	check(t, local.Write(filepath.Join(h.Dir, "provider.hujson"), settings))
}

var built struct {
	once     sync.Once
	dir      string
	old, new release
	missing  string // why there is no old source
	err      error
}

// releases builds both, once. Without the history of this source there is nothing to compare with.
func releases(t *testing.T) (old, new release) {
	t.Helper()
	if testing.Short() {
		t.Skip("left out by -short: it takes long")
	}
	built.once.Do(func() { built.err = build() })
	if built.err != nil {
		t.Fatal(built.err)
	}
	if built.missing != "" {
		t.Skip("NOT RUN: releases beside each other: " + built.missing)
	}
	return built.old, built.new
}

func build() (err error) {
	if built.dir, err = os.MkdirTemp("", "florete-versions-"); err != nil {
		return err
	}
	repo, err := filepath.Abs("../..")
	if err != nil {
		return err
	}
	built.old = release{filepath.Join(built.dir, "source"), filepath.Join(built.dir, "old"), true}
	built.new = release{repo, filepath.Join(built.dir, "new"), false}
	if exec.Command("git", "-C", repo, "cat-file", "-e", oldest+"^{commit}").Run() != nil {
		built.missing = fmt.Sprintf("this source comes without commit %.12s: git fetch --unshallow", oldest)
		return nil
	}
	archive := filepath.Join(built.dir, "source.tar")
	for _, args := range [][]string{
		{"git", "-C", repo, "archive", "--output", archive, oldest},
		{"mkdir", built.old.repo},
		{"tar", "--extract", "--file", archive, "--directory", built.old.repo},
	} {
		if out, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %w: %s", args[0], err, out)
		}
	}
	cmd := exec.Command("go", "build", "-tags=netgo,osusergo", "-o", built.old.bin+"/", "./agent/cmd/flor", "./nix/cmd/florctl", "./providers/cmd/flor-provider")
	cmd.Dir, cmd.Env = built.old.repo, append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("go build in %s: %w: %s", cmd.Dir, err, out)
	}
	return kit.Programs(context.Background(), repo, built.new.bin)
}

func TestMain(m *testing.M) {
	code := m.Run()
	_ = os.RemoveAll(built.dir)
	os.Exit(code)
}
