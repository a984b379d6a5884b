package confirm

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/florete/florete/activation/documents"
	"github.com/florete/florete/internal/hostdir"
)

// Paths of a host's NixOS profile, of its running NixOS system, and of the directory with bundles.
const (
	NixOSProfile = "/nix/var/nix/profiles/system"
	NixOSCurrent = "/run/current-system"
	bundles      = "/usr/local/lib"
)

// Installation is a NixOS system or an unpacked bundle that is about to replace the installed one.
// Its method Begin ensures that the host returns to the old one if the new one is not confirmed.
type Installation struct {
	Instance hostdir.Instance
	State    hostdir.Layout
	Dir      string // store path of the system, or directory of the unpacked bundle
	Action   string // argument of switch-to-configuration

	// Arm starts SuperviseSystem in a separate process that keeps running while the installation
	// changes. Arm returns when that process is running.
	Arm func(ctx context.Context) error

	root string // root directory of the machine; only set in tests
}

// Begin prepares the rollback of an installation that the caller is about to change. It writes a
// pending change to disk and starts the process that supervises it. The caller then makes the
// change. If the change is not confirmed within the timeout, the host restores the old
// installation, even if the change is only half made. Begin returns nil without an error if the
// change takes effect only at the next boot, or if it is itself a rollback.
func (n Installation) Begin(ctx context.Context, timeout time.Duration) (*hostdir.Change, error) {
	if timeout < time.Second || timeout > longest {
		return nil, fmt.Errorf("--confirm-timeout %s: want between 1s and %s", timeout, longest)
	}
	s, documentsDir, err := n.system()
	if s == nil || err != nil {
		return nil, err
	}
	if c, err := n.State.PendingChange(); err == nil && c != nil && c.System != nil && (c.System.Before == s.To || c.System.To == s.To) {
		return nil, nil
	}
	now, err := documents.ReadClock()
	if err != nil {
		return nil, err
	}
	c := now.Change(timeout)
	c.System = s
	return documents.BeginSystem(ctx, n.State, c, documentsDir, n.Arm)
}

// system returns a description of the change, and the directory of the documents that the new
// installation contains. It returns nil if there is nothing to undo.
func (n Installation) system() (*hostdir.System, string, error) {
	dir, err := filepath.EvalSymlinks(n.Dir)
	if err != nil {
		return nil, "", err
	}
	if _, err := os.Stat(switcher(dir)); err == nil {
		s, err := n.nixos(dir)
		return s, filepath.Join(dir, n.Instance.Etc(), "documents"), err
	}
	s, err := n.bundle(dir)
	return s, filepath.Join(dir, "documents"), err
}

func switcher(system string) string { return filepath.Join(system, "bin/switch-to-configuration") }

func (n Installation) nixos(to string) (*hostdir.System, error) {
	if n.Action != "switch" && n.Action != "test" {
		return nil, nil // takes effect at the next boot, if at all
	}
	s := hostdir.System{Link: n.root + NixOSCurrent, To: to}
	if s.Before = s.InForce(); s.Before == "" {
		return nil, fmt.Errorf("%s: no system to go back to: switch without services.%s.confirm", s.Link, n.Instance)
	}
	if s.Before == to {
		return nil, nil
	}
	if _, err := os.Stat(switcher(s.Before)); err != nil {
		return nil, fmt.Errorf("the running system cannot be switched to: %w: switch without services.%s.confirm", err, n.Instance)
	}
	s.Undo = []string{switcher(s.Before), n.Action}
	if n.Action == "test" {
		return &s, nil
	}
	s.Profile = n.root + NixOSProfile
	var err error
	s.Generation, err = generation(s.Profile, s.Before)
	return &s, err
}

// generation returns the name of the symbolic link by which a Nix profile refers to a NixOS system,
// such as system-12-link. If the profile does not contain the system, for example because the
// system was only tested, generation adds it. This protects the system from Nix's garbage
// collection.
func generation(profile, system string) (string, error) {
	dir, base := filepath.Split(profile)
	entries, err := os.ReadDir(dir)
	if err != nil {
		return "", err
	}
	newest := 0
	for _, e := range entries {
		number, _ := strings.CutSuffix(strings.TrimPrefix(e.Name(), base+"-"), "-link")
		i, err := strconv.Atoi(number)
		if err != nil || fmt.Sprintf("%s-%d-link", base, i) != e.Name() {
			continue
		}
		newest = max(newest, i)
		if to, err := filepath.EvalSymlinks(filepath.Join(dir, e.Name())); err == nil && to == system {
			return e.Name(), nil
		}
	}
	name := fmt.Sprintf("%s-%d-link", base, newest+1)
	return name, os.Symlink(system, filepath.Join(dir, name))
}

func (n Installation) bundle(dir string) (*hostdir.System, error) {
	version, err := os.ReadFile(filepath.Join(dir, "version"))
	if err != nil {
		return nil, fmt.Errorf("neither a NixOS system nor an unpacked bundle: %w", err)
	}
	base := filepath.Join(n.root+bundles, n.Instance.String())
	s := hostdir.System{Link: filepath.Join(base, "current"), To: filepath.Join(base, strings.TrimSpace(string(version)))}
	switch s.Before = s.InForce(); s.Before {
	case s.To:
		return nil, nil
	case "":
		s.Undo = []string{filepath.Join(dir, "install.sh"), "--remove"}
	default:
		s.Undo = []string{filepath.Join(s.Before, "install.sh")}
	}
	return &s, nil
}

// goBack restores the installation that a change replaced. It can be called again if it fails or is
// interrupted.
func goBack(ctx context.Context, s hostdir.System) error {
	if s.Profile != "" {
		next := s.Profile + ".florete"
		if err := os.Remove(next); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if err := os.Symlink(s.Generation, next); err != nil {
			return err
		}
		if err := os.Rename(next, s.Profile); err != nil {
			return err
		}
	}
	cmd := exec.CommandContext(ctx, s.Undo[0], s.Undo[1:]...)
	cmd.Env = append(os.Environ(), "NIXOS_NO_CHECK=1") // checks that may refuse a switch must not prevent this one
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	err := cmd.Run()
	if found := s.InForce(); found != s.Before {
		return errors.Join(err, fmt.Errorf("%s is in force, want %q: %s", found, s.Before, strings.Join(s.Undo, " ")))
	}
	if err != nil { // for example because a unit does not start, which may have been so before
		fmt.Fprintf(os.Stderr, "%s: %v\n", strings.Join(s.Undo, " "), err)
	}
	return nil
}
