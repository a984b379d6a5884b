package compile

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"strings"
)

// At is the same flake as git has it at a revision, such as "HEAD" or "main~2",
// whatever the working tree holds. A revision with a colon is a flake reference
// of its own, for flakes that are in no local repository.
func (s Source) At(ctx context.Context, rev string) (Source, error) {
	if strings.Contains(rev, ":") {
		s.Flake = rev
		return s, nil
	}
	dir := s.ref()
	if fi, err := os.Stat(dir); err != nil || !fi.IsDir() {
		return s, fmt.Errorf("cannot look at revision %s of %s, which is no directory: give the directory of the cluster, and revisions with --from and --to, or two flake references", rev, dir)
	}
	where, err := git(ctx, dir, "rev-parse", "--show-toplevel", "--show-prefix")
	if err != nil {
		return s, fmt.Errorf("cannot look at revision %s of %s: %w: commit the cluster, or give a flake reference such as path:/other/cluster", rev, dir, err)
	}
	commit, err := git(ctx, dir, "rev-parse", "--verify", "--quiet", "--end-of-options", rev+"^{commit}")
	if err != nil {
		return s, fmt.Errorf("cannot look at revision %s of %s: git knows no such commit", rev, dir)
	}
	top, prefix, _ := strings.Cut(where, "\n")
	query := url.Values{"rev": {commit}, "shallow": {"1"}}
	if prefix != "" {
		query.Set("dir", strings.TrimSuffix(prefix, "/"))
	}
	s.Flake = (&url.URL{Scheme: "git+file", Path: top, RawQuery: query.Encode()}).String()
	return s, nil
}

// Unseen are files below the flake that git does not know and Nix therefore does
// not see: one forgotten is a change that has no effect.
func (s Source) Unseen(ctx context.Context) []string {
	out, err := git(ctx, s.ref(), "ls-files", "--others", "--exclude-standard", "--", "*.nix")
	if err != nil || out == "" {
		return nil
	}
	return strings.Split(out, "\n")
}

func git(ctx context.Context, dir string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "git", append([]string{"-C", dir}, args...)...)
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
