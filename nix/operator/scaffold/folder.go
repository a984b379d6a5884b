package scaffold

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/florete/florete/nix/operator/compile"
	"github.com/florete/florete/nix/operator/plan"
)

// Folder is the path of the directory in which a cluster is declared. The directory is in a git
// work tree.
type Folder string

// Add writes new files to the folder and adds them to git, because Nix reads only files that git
// tracks. It then calls check. If anything fails, Add removes the files again and returns the
// error.
func (f Folder) Add(ctx context.Context, files []File, check func() error) (err error) {
	var written, dirs []string
	defer func() {
		if err != nil {
			err = errors.Join(err, f.undo(written, dirs))
		}
	}()
	for _, file := range files {
		path := filepath.Join(string(f), filepath.FromSlash(file.Path))
		for dir := filepath.Dir(path); len(dir) > len(filepath.Clean(string(f))); dir = filepath.Dir(dir) {
			if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
				dirs = append([]string{dir}, dirs...)
			}
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := create(path, file.Text); err != nil {
			return err
		}
		written = append(written, file.Path)
	}
	if _, err := f.Git(ctx, append([]string{"add", "--"}, written...)...); err != nil {
		return err
	}
	return check()
}

// Extend adds an item, such as a host, to the declaration of the cluster. It calls make for the
// files of the item, adds them to the folder, and prints them with the changes that they cause.
// Extend then checks the new topology: if it has faults, or if the function there does not find the
// item in it, Extend removes the files again and returns an error.
func (f Folder) Extend(ctx context.Context, src compile.Source, there func(compile.Topology) bool, make func(compile.Topology) ([]File, error), out io.Writer, colours bool) error {
	if _, err := os.Stat(filepath.Join(string(f), "cluster.nix")); err != nil {
		return fmt.Errorf("%w: want the folder of a cluster, as florctl init makes it", err)
	}
	before, err := compile.Read(ctx, src)
	if err != nil {
		return fmt.Errorf("repair these faults first: %w", err)
	}
	files, err := make(before.Topology)
	if err != nil {
		return err
	}
	var after compile.Snapshot
	err = f.Add(ctx, files, func() (err error) {
		after, err = compile.Read(ctx, src)
		if err == nil && !there(after.Topology) {
			err = errors.New("the cluster does not contain the new item, because flake.nix does not read this folder: want florete.lib.folder ./. without changes to its result")
		}
		return err
	})
	if err != nil {
		return err
	}
	for _, file := range files {
		fmt.Fprintf(out, "%s:\n%s\n", filepath.Join(string(f), file.Path), file.Text)
	}
	p, err := plan.Compare(before, after)
	if err != nil {
		return err
	}
	return p.Text(out, colours)
}

func create(path, text string) error {
	out, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%s: already exists, and is not changed: edit the file", path)
	}
	if err != nil {
		return err
	}
	_, err = out.WriteString(text)
	return errors.Join(err, out.Close())
}

// undo removes files, and the directories that are then empty.
func (f Folder) undo(files, dirs []string) error {
	if len(files) == 0 {
		return nil
	}
	_, err := f.Git(context.Background(), append([]string{"rm", "--quiet", "--force", "--ignore-unmatch", "--"}, files...)...)
	for _, file := range files {
		if failed := os.Remove(filepath.Join(string(f), filepath.FromSlash(file))); failed != nil && !errors.Is(failed, fs.ErrNotExist) {
			err = errors.Join(err, failed)
		}
	}
	for i := len(dirs) - 1; i >= 0; i-- {
		_ = os.Remove(dirs[i]) // a directory that is not empty is kept
	}
	return err
}

// Git runs git in the folder and returns its output.
func (f Folder) Git(ctx context.Context, args ...string) (string, error) {
	out, err := exec.CommandContext(ctx, "git", append([]string{"-C", string(f)}, args...)...).CombinedOutput()
	text := strings.TrimSpace(string(out))
	if errors.Is(err, exec.ErrNotFound) {
		return "", errors.New("no program \"git\" in PATH: install it, on Debian with apt install git")
	}
	if err != nil {
		return "", fmt.Errorf("git %s: %s", args[0], strings.TrimPrefix(text, "fatal: "))
	}
	return text, nil
}
