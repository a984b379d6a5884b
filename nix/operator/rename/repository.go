package rename

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/florete/florete/internal/atomicfile"
	"github.com/florete/florete/nix/operator/compile"
)

// repository is the directory with the files that Nix reads: a git work tree, or the directory of a
// flake that is in none.
type repository struct {
	root  string
	dir   string // directory of the flake in it, with slashes
	isGit bool
	names []string // files that Nix reads, with slashes
}

func open(ctx context.Context, dir string) (repository, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return repository{}, err
	}
	if _, err := os.Stat(filepath.Join(dir, "flake.nix")); err != nil {
		return repository{}, fmt.Errorf("%w: want the directory that contains the flake of the cluster", err)
	}
	r := repository{root: dir}
	if where, err := git(ctx, dir, "rev-parse", "--show-toplevel", "--show-prefix"); err == nil {
		top, prefix, _ := strings.Cut(string(where), "\n")
		r.root, r.dir, r.isGit = top, strings.Trim(prefix, "/\n"), true
		list, err := git(ctx, top, "ls-files", "-z")
		if err != nil {
			return r, err
		}
		r.names = strings.FieldsFunc(string(list), func(c rune) bool { return c == 0 })
		r.names = slices.Compact(slices.Sorted(slices.Values(r.names)))
		return r, nil
	}
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			name, _ := filepath.Rel(dir, path)
			r.names = append(r.names, filepath.ToSlash(name))
		}
		return err
	})
	return r, err
}

func (r repository) path(name string) string { return filepath.Join(r.root, filepath.FromSlash(name)) }

// read returns a file that Nix reads. Symbolic links and other files that are not regular are left
// out.
func (r repository) read(name string) ([]byte, bool) {
	if _, known := slices.BinarySearch(r.names, name); !known && r.isGit {
		return nil, false
	}
	if fi, err := os.Lstat(r.path(name)); err != nil || !fi.Mode().IsRegular() {
		return nil, false
	}
	b, err := os.ReadFile(r.path(name))
	return b, err == nil
}

// copy copies the files to an empty directory, from which Nix reads them in the same way.
func (r repository) copy(ctx context.Context, to string) (repository, error) {
	c := r
	c.root = to
	c.names = nil
	for _, name := range r.names {
		fi, err := os.Lstat(r.path(name))
		if errors.Is(err, fs.ErrNotExist) || err == nil && fi.IsDir() {
			continue // removed and not committed, or a submodule, which Nix does not read
		}
		if err != nil {
			return c, err
		}
		if err := os.MkdirAll(filepath.Dir(c.path(name)), 0o755); err != nil {
			return c, err
		}
		if fi.Mode()&fs.ModeSymlink != 0 {
			target, err := os.Readlink(r.path(name))
			if err == nil {
				err = os.Symlink(target, c.path(name))
			}
			if err != nil {
				return c, err
			}
		} else if fi.Mode().IsRegular() {
			b, err := os.ReadFile(r.path(name))
			if err == nil {
				err = os.WriteFile(c.path(name), b, fi.Mode().Perm())
			}
			if err != nil {
				return c, err
			}
		}
		c.names = append(c.names, name)
	}
	if !r.isGit {
		return c, nil
	}
	_, err := git(ctx, to, "init", "--quiet")
	if err == nil {
		_, err = git(ctx, to, "add", "--all", "--force")
	}
	return c, err
}

// flake returns the directory of the flake.
func (r repository) flake() string { return r.path(r.dir) }

// write replaces files. If that fails, it restores what it replaced. was has the contents of the
// files, which must not have changed.
func (r repository) write(ctx context.Context, was, is files) (err error) {
	var undo []func() error
	defer func() {
		if err != nil {
			for _, back := range slices.Backward(undo) {
				err = errors.Join(err, back())
			}
		}
	}()
	for _, name := range sortedFiles(is) {
		_, statErr := os.Lstat(r.path(name))
		if now, _ := r.read(name); was[name] == nil && !errors.Is(statErr, fs.ErrNotExist) {
			return fmt.Errorf("%s: already exists, and is not changed: move it away, and run the command again", name)
		} else if was[name] != nil && !bytes.Equal(now, was[name]) {
			return fmt.Errorf("%s: somebody changed it in the meantime: run the command again", name)
		}
	}
	for _, name := range sortedFiles(is) {
		path, before, mode := r.path(name), was[name], fs.FileMode(0o644)
		if fi, err := os.Lstat(path); err == nil {
			mode = fi.Mode().Perm()
		}
		if is[name] == nil {
			undo = append(undo, func() error { return atomicfile.File(path, before, mode) })
			if err := os.Remove(path); err != nil {
				return err
			}
			continue
		}
		undo = append(undo, func() error {
			if before == nil {
				return os.Remove(path)
			}
			return atomicfile.File(path, before, mode)
		})
		if err := atomicfile.File(path, is[name], mode); err != nil {
			return err
		}
	}
	// Nix reads new files only if git knows them.
	for _, name := range sortedFiles(is) {
		if r.isGit && (was[name] == nil || is[name] == nil) {
			if _, err := git(ctx, r.root, "add", "--all", "--", name); err != nil {
				return err
			}
			undo = append(undo, func() error { _, err := git(ctx, r.root, "reset", "--quiet", "--", name); return err })
		}
	}
	return nil
}

// difference returns the difference between files. It writes them to an empty directory for that.
func difference(ctx context.Context, tmp string, was, is files) (string, error) {
	for side, all := range map[string]files{"a": was, "b": is} {
		if err := os.Mkdir(filepath.Join(tmp, side), 0o755); err != nil {
			return "", err
		}
		for name, text := range all {
			if text == nil {
				continue
			}
			path := filepath.Join(tmp, side, filepath.FromSlash(name))
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				return "", err
			}
			if err := os.WriteFile(path, text, 0o644); err != nil {
				return "", err
			}
		}
	}
	// The exit code is 1 if files differ.
	out, err := git(ctx, tmp, "diff", "--no-index", "--no-prefix", "--no-color", "--no-ext-diff", "--find-renames", "a", "b")
	if exit := new(exec.ExitError); errors.As(err, &exit) && exit.ExitCode() == 1 {
		err = nil
	}
	// Digests of the contents are of no use to people.
	return digests.ReplaceAllString(string(out), ""), err
}

var digests = regexp.MustCompile(`(?m)^index [0-9a-f]+\.\.[0-9a-f]+( [0-7]+)?\n`)

// git runs git in a directory, and returns its output.
func git(ctx context.Context, dir string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, "git", append([]string{"-C", dir}, args...)...)
	cmd.Env = compile.Environ()
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if errors.Is(err, exec.ErrNotFound) {
		return nil, errors.New("no program \"git\" in PATH: install it, on Debian with apt install git")
	}
	if err != nil {
		err = fmt.Errorf("git %s: %w: %s", args[0], err, strings.TrimPrefix(strings.TrimSpace(stderr.String()), "fatal: "))
	}
	return out, err
}
