package scaffold

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/nix-community/go-nix/pkg/narinfo/signature"

	"github.com/florete/florete/internal/secretfile"
	"github.com/florete/florete/internal/terminal"
	"github.com/florete/florete/nix/operator/authority"
	"github.com/florete/florete/nix/operator/compile"
	"github.com/florete/florete/providers/ca"
)

// Init creates the flake of a new cluster in the directory path, which must be empty or absent, and
// commits it. It creates the keys of the cluster in the directory keys, outside of the flake,
// unless they exist. It sets empty fields of c to their defaults. The results are the absolute
// paths of both directories.
func Init(ctx context.Context, c *Cluster, path, keys string, how *authority.RootKey) (dir, keyDir string, err error) {
	if dir, err = filepath.Abs(path); err != nil {
		return "", "", err
	}
	c.Name = cmp.Or(c.Name, filepath.Base(dir))
	if c.TrustDomain == "" {
		c.TrustDomain = c.Name + ".flor"
	}
	if err := CheckName("--name", c.Name); err != nil {
		return "", "", err
	}
	if keys == "" {
		if keys, err = dataHome("florete", c.Name); err != nil {
			return "", "", err
		}
	}
	if keys, err = filepath.Abs(keys); err != nil {
		return "", "", err
	}
	if within, err := filepath.Rel(dir, keys); err == nil && filepath.IsLocal(within) {
		return "", "", fmt.Errorf("%s: private keys in the tree of %s, where the next commit would publish them: keep them outside, with --keys DIR", keys, dir)
	}
	if entries, err := os.ReadDir(dir); err == nil && len(entries) > 0 {
		return "", "", fmt.Errorf("%s: contains %s, want a directory that is empty or does not exist yet", dir, entries[0].Name())
	}
	if out, err := exec.CommandContext(ctx, "git", "var", "GIT_COMMITTER_IDENT").CombinedOutput(); err != nil {
		return "", "", fmt.Errorf("git cannot commit: %w: %s", err, strings.TrimSpace(string(out)))
	}
	if err := c.makeKeys(keys, how); err != nil {
		return "", "", err
	}
	c.PathSalt = rand.Text()
	return dir, keys, c.make(ctx, dir)
}

// dataHome returns a directory for the user's data (XDG Base Directory Specification).
func dataHome(name ...string) (string, error) {
	dir := os.Getenv("XDG_DATA_HOME")
	if !filepath.IsAbs(dir) {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", fmt.Errorf("%w: name the directory for keys with --keys DIR", err)
		}
		dir = filepath.Join(home, ".local/share")
	}
	return filepath.Join(append([]string{dir}, name...)...), nil
}

// makeKeys uses the keys in a directory. If there are none, it creates all of them.
func (c *Cluster) makeKeys(dir string, how *authority.RootKey) error {
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		if err := c.makeKeyDir(dir, how); err != nil {
			return err
		}
	}
	b, err := os.ReadFile(filepath.Join(dir, "ca.crt"))
	if err != nil {
		return fmt.Errorf("%w: with --keys DIR, name the directory that contains ca.crt, ca.key and signing.key, or one that does not exist yet", err)
	}
	c.Root = string(b)
	for _, f := range compile.CheckRoots([]string{c.Root}, c.TrustDomain, time.Now()) {
		if f.IsError() {
			return fmt.Errorf("%s: %s %s, want a root of trust domain %s: give another directory with --keys DIR, or another --trust-domain", filepath.Join(dir, "ca.crt"), f.Problem, f.Value, c.TrustDomain)
		}
	}
	b, err = secretfile.ReadFile(filepath.Join(dir, "signing.key"))
	if err != nil {
		return err
	}
	secret, err := signature.LoadSecretKey(strings.TrimSpace(string(b)))
	if err != nil {
		return fmt.Errorf("%s: %w", filepath.Join(dir, "signing.key"), err)
	}
	c.SigningKey = secret.ToPublicKey().String()
	return nil
}

// makeKeyDir creates the directory with all keys. If it fails, it leaves no directory behind.
func (c *Cluster) makeKeyDir(dir string, how *authority.RootKey) (err error) {
	if err := secretfile.RefuseTree(dir); err != nil {
		return fmt.Errorf("%w, with --keys DIR", err)
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o700); err != nil {
		return err
	}
	made, err := os.MkdirTemp(filepath.Dir(dir), ".florctl-init-") // mode 0700
	if err != nil {
		return err
	}
	defer os.RemoveAll(made)
	if _, _, _, err := authority.Make(ca.Dir(made), c.TrustDomain, how); err != nil {
		return err
	}
	secret, _, err := signature.GenerateKeypair(c.Name+"-1", rand.Reader)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(made, "signing.key"), []byte(secret.String()+"\n"), 0o600); err != nil {
		return err
	}
	return os.Rename(made, dir)
}

// make writes the flake, pins the inputs of the flake, and commits it. After an error it leaves
// nothing behind.
func (c *Cluster) make(ctx context.Context, dir string) (err error) {
	files, err := c.Files()
	if err != nil {
		return err
	}
	_, there := os.Stat(dir)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	defer func() {
		if err == nil {
			return
		}
		entries, _ := os.ReadDir(dir)
		for _, e := range entries {
			_ = os.RemoveAll(filepath.Join(dir, e.Name()))
		}
		if errors.Is(there, fs.ErrNotExist) {
			_ = os.Remove(dir)
		}
	}()
	folder := Folder(dir)
	if _, err := folder.Git(ctx, "init", "--quiet", "--initial-branch", "main"); err != nil {
		return err
	}
	return folder.Add(ctx, files, func() error {
		defer terminal.Progress("pinning Florete, and validating")()
		src := compile.Source{Flake: dir}
		if err := src.Lock(ctx); err != nil {
			return err
		}
		reports, err := compile.Validate(ctx, src, time.Now())
		if err != nil {
			return err
		}
		if err := reports[0].Err(false); err != nil {
			return err
		}
		if _, err := folder.Git(ctx, "add", "flake.lock"); err != nil {
			return err
		}
		_, err = folder.Git(ctx, "commit", "--quiet", "--message", "cluster "+c.Name)
		return err
	})
}
