package compile

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// At returns the source for a git revision of the flake, such as "HEAD" or "main~2". Uncommitted
// changes are not part of it. If rev contains a colon, it is a flake reference, which At uses in
// place of the reference in s.
func (s Source) At(ctx context.Context, rev string) (Source, error) {
	if strings.Contains(rev, ":") {
		s.Flake = rev
		return s, nil
	}
	dir := s.dir()
	if fi, err := os.Stat(dir); err != nil || !fi.IsDir() {
		return s, fmt.Errorf("cannot look at revision %s of %s, which is no directory: give the directory of the cluster, and revisions with --from and --to, or two flake references", rev, dir)
	}
	where, err := git(ctx, dir, "rev-parse", "--show-toplevel", "--show-prefix")
	if err != nil {
		return s, fmt.Errorf("cannot look at revision %s of %s: %w: commit the cluster, or give a flake reference such as path:/other/cluster", rev, dir, err)
	}
	commit, err := git(ctx, dir, "rev-parse", "--verify", "--quiet", "--end-of-options", rev+"^{commit}")
	if err != nil {
		if _, err := git(ctx, dir, "rev-parse", "--verify", "--quiet", "HEAD"); err != nil {
			return s, fmt.Errorf("cannot look at revision %s of %s: there is no commit yet to compare with: commit the cluster first", rev, dir)
		}
		remedy := ", want one that git log prints"
		if shallow, err := git(ctx, dir, "rev-parse", "--is-shallow-repository"); err == nil && shallow == "true" {
			remedy = ": this clone is shallow, so fetch the rest with git fetch --unshallow; in CI, check out the whole history"
		}
		return s, fmt.Errorf("cannot look at revision %s of %s: git has no such commit%s", rev, dir, remedy)
	}
	top, prefix, _ := strings.Cut(where, "\n")
	query := url.Values{"rev": {commit}, "shallow": {"1"}}
	if prefix != "" {
		query.Set("dir", strings.TrimSuffix(prefix, "/"))
	}
	s.Flake = (&url.URL{Scheme: "git+file", Path: top, RawQuery: query.Encode()}).String()
	return s, nil
}

// Descends returns an error unless a git revision of the flake contains all commits of an earlier
// revision, which is the last argument. The flake must be in a local git clone.
func (s Source) Descends(ctx context.Context, rev, from string) error {
	if rev == from {
		return nil
	}
	dir := s.dir()
	if u, err := url.Parse(dir); err == nil && u.Scheme == "git+file" {
		dir = u.Path
	}
	if !isFolder(dir) {
		return fmt.Errorf("cannot find out whether revision %.12s has the commits of %.12s from %s: use a git clone of the flake", rev, from, dir)
	}
	if _, err := git(ctx, dir, "cat-file", "-e", from+"^{commit}"); err != nil {
		return fmt.Errorf("revision %.12s is not in this clone: git pull", from)
	}
	if _, err := git(ctx, dir, "merge-base", "--is-ancestor", from, rev); err != nil {
		return fmt.Errorf("revision %.12s lacks commits of %.12s: git merge %.12[2]s, or git rebase", rev, from)
	}
	return nil
}

// LockCommand is the command that error messages suggest for pinning the inputs of a flake. florctl
// itself does not write the lock file.
const LockCommand = "nix flake lock && git add flake.lock && git commit -m 'pin inputs' flake.lock"

// Unlocked reports whether the documents have no git revision because flake.lock does not lock all
// inputs of the flake. If src overrides inputs, the cause is unknown, and Unlocked returns false.
func (c Cluster) Unlocked(src Source) bool {
	for _, documents := range c.Documents {
		for _, d := range documents {
			return d.Envelope.Rev == "" && len(src.Args) == 0
		}
	}
	return false
}

// Unversioned reports whether the documents of the cluster have neither a serial nor a revision,
// because the flake calls mkCluster without self.
func (c Cluster) Unversioned() bool {
	for _, documents := range c.Documents {
		for _, d := range documents {
			return d.Envelope.Rev == "" && d.Envelope.Serial == 0
		}
	}
	return false
}

// NoteLock returns a warning to print if the flake has inputs but no flake.lock. Otherwise it
// returns "".
func (s Source) NoteLock(ctx context.Context) string {
	dir := s.dir()
	if fi, err := os.Stat(dir); err != nil || !fi.IsDir() || len(s.Args) > 0 {
		return ""
	}
	if _, err := os.Stat(filepath.Join(dir, "flake.lock")); err == nil {
		return ""
	}
	var metadata struct {
		Locks struct{ Nodes map[string]any }
	}
	if err := run(ctx, []string{"flake", "metadata", dir}, nil, &metadata); err != nil || len(metadata.Locks.Nodes) < 2 {
		return ""
	}
	return "there is no flake.lock, so Florete is whatever its repository has today: " + LockCommand
}

// Lock writes the file flake.lock of the flake.
func (s Source) Lock(ctx context.Context) error {
	cmd := exec.CommandContext(ctx, "nix", append([]string{"--extra-experimental-features", "nix-command flakes", "flake", "lock", s.ref()}, s.Args...)...)
	cmd.Env = Environ()
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("nix flake lock: %w", explain(err, string(out)))
	}
	return nil
}

func git(ctx context.Context, dir string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "git", append([]string{"-C", dir}, args...)...)
	cmd.Env = Environ()
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	if errors.Is(err, exec.ErrNotFound) {
		return "", fmt.Errorf("no program \"git\" in PATH: install it, on Debian with apt install git")
	}
	if err != nil {
		said, _, _ := strings.Cut(strings.TrimSpace(stderr.String()), "\n")
		return "", errors.New(strings.TrimPrefix(said, "fatal: "))
	}
	return strings.TrimSpace(stdout.String()), nil
}
