package local

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/crypto/bcrypt"

	"github.com/florete/florete/tests/kit"
)

// Begin creates everything that an operator needs before writing the flake of a cluster: the root,
// the signing key and the installed hosts. The result is the content of the file facts.json, from
// which the topology takes values such as host keys.
func (o Operator) Begin(ctx context.Context, signingKey string, hosts ...*Host) (map[string]any, error) {
	if err := os.MkdirAll(o.Path("operator"), 0o700); err != nil {
		return nil, err
	}
	if _, err := o.Run(ctx, "florctl", "ca", "init", "--trust-domain", kit.Domain, "--out", o.Path("operator")); err != nil {
		return nil, err
	}
	public, err := o.SigningKey(ctx, signingKey)
	if err != nil {
		return nil, err
	}
	account, err := user.Current()
	if err != nil {
		return nil, err
	}
	keys := map[string]string{}
	for _, h := range hosts {
		if keys[h.Name], err = h.Install(); err != nil {
			return nil, err
		}
	}
	return map[string]any{"account": account.Username, "keys": []string{public}, "sshHostKeys": keys}, nil
}

// Flake copies the flake of a cluster to the folder cluster, adds the operator's root and the given
// facts to it, and locks its inputs. Begin returns the facts.
func (o Operator) Flake(ctx context.Context, cluster string, facts any) error {
	if err := o.Checkout(cluster); err != nil {
		return err
	}
	if err := Copy(o.Path("operator", "ca.crt"), o.Path("cluster", "ca.crt")); err != nil {
		return err
	}
	if err := Write(o.Path("cluster", "facts.json"), facts); err != nil {
		return err
	}
	return o.Lock(ctx)
}

// Install empties the host's directory, generates the host's SSH host key, and returns the public
// key. There is no systemd on such a host. Instead, a hook only logs which units would be
// restarted.
func (h *Host) Install() (public string, err error) {
	if err := os.RemoveAll(h.Dir); err != nil {
		return "", err
	}
	if err := os.MkdirAll(h.Dir, 0o700); err != nil {
		return "", err
	}
	hook := "#!/bin/sh\necho \"$@\" >> \"" + h.Log("hook") + "\"\n"
	if err := os.WriteFile(filepath.Join(h.Dir, "hook"), []byte(hook), 0o700); err != nil {
		return "", err
	}
	return kit.Authorized(kit.WriteHostKey(h.HostKey())), nil
}

// People writes the file users.hujson on the host, which lists the people who can sign in at the
// OIDC issuer. The e-mail address of a person is the name, "@" and the trust domain. All people
// have the same password.
func (h *Host) People(password string, names ...string) error {
	hash, err := bcrypt.GenerateFromPassword([]byte(password), bcrypt.DefaultCost)
	if err != nil {
		return err
	}
	var users []map[string]string
	for _, name := range names {
		users = append(users, map[string]string{"email": name + "@" + kit.Domain, "username": name, "userID": name, "hash": string(hash)})
	}
	return Write(filepath.Join(h.Dir, "users.hujson"), users)
}

// Halt stops all processes of the host, the provider processes last.
func (h *Host) Halt() error {
	h.mu.Lock()
	var parts []string
	for part := range h.running {
		parts = append(parts, part)
	}
	h.mu.Unlock()
	slices.SortFunc(parts, func(a, b string) int {
		return strings.Compare(fmt.Sprint(strings.HasPrefix(a, ProviderPart("")), a), fmt.Sprint(strings.HasPrefix(b, ProviderPart("")), b))
	})
	var errs []error
	for _, part := range parts {
		errs = append(errs, h.Stop(part, syscall.SIGTERM))
	}
	return errors.Join(errs...)
}

// Write writes v as JSON to a file with mode 0600.
func Write(path string, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return os.WriteFile(path, b, 0o600)
}
