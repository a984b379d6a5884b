package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"florete"
	"florete/tests/local"

	"golang.org/x/crypto/bcrypt"
)

const (
	trustDomain = "demo.flor"
	forge       = "drhorrible" // runs every provider
	newcomer    = "laptop"     // the host that the first revision does not have
	alicesMail  = "alice@demo.flor"
)

var hostNames = []string{forge, "raishan", "ursula", "mgmt01", newcomer}

// prepare does what an operator does once: keys, root CA, three revisions of the
// flake, the issuing certificate.
func (s *story) prepare(ctx context.Context) error {
	if err := s.flake(ctx); err != nil {
		return err
	}
	if _, err := s.run(ctx, "florctl", "ca", "init", "--trust-domain", trustDomain, "--out", s.path("operator")); err != nil {
		return err
	}
	if err := s.keys(ctx); err != nil {
		return err
	}
	if err := s.revisions(ctx); err != nil {
		return err
	}
	d, err := florete.Read(s.path("newer", forge), florete.DocManifest)
	if err != nil {
		return err
	}
	s.serial = d.Envelope.Serial
	return s.issuer(ctx)
}

// flake copies the example and the flake it builds on, as a user's checkout.
func (s *story) flake(ctx context.Context) error {
	for _, dir := range []string{"florete", "operator"} {
		if err := os.MkdirAll(s.path(dir), 0o700); err != nil {
			return err
		}
	}
	for _, part := range []string{"flake.nix", "flake.lock", "nix", "modules"} {
		from := filepath.Join(s.repo, part)
		if _, err := os.Stat(from); err != nil {
			continue
		}
		if err := local.Copy(from, s.path("florete", part)); err != nil {
			return err
		}
	}
	return local.Copy(filepath.Join(s.repo, "tests", "cluster"), s.path("cluster"))
}

// keys makes what each machine has of its own and puts the public halves where
// the topology reads them.
func (s *story) keys(ctx context.Context) error {
	account, err := user.Current()
	if err != nil {
		return err
	}
	facts := struct {
		Account     string            `json:"account"`
		Keys        []string          `json:"keys"`
		SSHHostKeys map[string]string `json:"sshHostKeys"`
	}{Account: account.Username, SSHHostKeys: map[string]string{}}

	secret, err := s.run(ctx, "nix", "key", "generate-secret", "--key-name", "demo-1")
	if err != nil {
		return err
	}
	if err := os.WriteFile(s.path("operator", "signing.key"), []byte(secret), 0o600); err != nil {
		return err
	}
	convert := exec.CommandContext(ctx, "nix", "key", "convert-secret-to-public")
	convert.Stdin = strings.NewReader(secret)
	public, err := convert.Output()
	if err != nil {
		return fmt.Errorf("nix key convert-secret-to-public: %w", err)
	}
	facts.Keys = []string{strings.TrimSpace(string(public))}

	for _, name := range hostNames {
		h := s.hosts[name]
		if err := os.MkdirAll(h.Dir, 0o700); err != nil {
			return err
		}
		if facts.SSHHostKeys[name], err = local.MakeHostKey(h.HostKey()); err != nil {
			return err
		}
		hook := "#!/bin/sh\necho \"$@\" >> \"" + h.Log("hook") + "\"\n"
		if err := os.WriteFile(filepath.Join(h.Dir, "hook"), []byte(hook), 0o700); err != nil {
			return err
		}
	}
	b, err := json.MarshalIndent(facts, "", "  ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(s.path("cluster", "facts.json"), b, 0o644); err != nil {
		return err
	}
	return local.Copy(s.path("operator", "ca.crt"), s.path("cluster", "ca.crt"))
}

// revisions commits the cluster, first without the newcomer, last with a raised
// generation of a secret, and compiles each: the older one is what the provider
// will still have when the hosts start.
func (s *story) revisions(ctx context.Context) error {
	entry := s.path("cluster", "hosts", newcomer+".nix")
	held, err := os.ReadFile(entry)
	if err != nil {
		return err
	}
	now := time.Now()
	services := s.path("cluster", "services.nix")
	written, err := os.ReadFile(services)
	if err != nil {
		return err
	}
	const ref = `ref = "wiki/smtp-password";`
	rotated := strings.Replace(string(written), ref, ref+" generation = 2;", 1)
	if err := s.git(ctx, now, "init", "--quiet", "--initial-branch=main"); err != nil {
		return err
	}
	// An override on each command would make the tree count as changed.
	if err := s.git(ctx, now, "add", "--all"); err != nil {
		return err
	}
	if _, err := s.run(ctx, "nix", "flake", "lock", s.flakeRef(), "--override-input", "florete", "path:"+s.path("florete")); err != nil {
		return err
	}
	if err := os.Remove(entry); err != nil {
		return err
	}
	if err := s.commit(ctx, now.Add(-2*time.Minute), "the cluster", "older"); err != nil {
		return err
	}
	if err := os.WriteFile(entry, held, 0o644); err != nil {
		return err
	}
	if err := s.commit(ctx, now.Add(-time.Minute), "add "+newcomer, "newer"); err != nil {
		return err
	}
	if err := os.WriteFile(services, []byte(rotated), 0o644); err != nil {
		return err
	}
	return s.commit(ctx, now, "rotate the password of wiki", "rotated")
}

func (s *story) commit(ctx context.Context, at time.Time, message, name string) error {
	if err := s.git(ctx, at, "add", "--all"); err != nil {
		return err
	}
	if err := s.git(ctx, at, "commit", "--quiet", "--message", message); err != nil {
		return err
	}
	if _, err := s.run(ctx, "florctl", "compile", s.flakeRef(), "--out", s.path(name)); err != nil {
		return err
	}
	_, err := s.run(ctx, "florctl", "publish", s.flakeRef(), "--key", s.path("operator", "signing.key"), "--to", s.path("published-"+name))
	return err
}

func (s *story) flakeRef() string { return "git+file://" + s.path("cluster") }

func (s *story) git(ctx context.Context, at time.Time, args ...string) error {
	cmd := exec.CommandContext(ctx, "git", append([]string{"-C", s.path("cluster"), "-c", "user.name=operator", "-c", "user.email=operator@demo.flor", "-c", "commit.gpgsign=false"}, args...)...)
	stamp := at.Format(time.RFC3339)
	cmd.Env = append(os.Environ(), "GIT_AUTHOR_DATE="+stamp, "GIT_COMMITTER_DATE="+stamp, "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("git %s: %w: %s", args[0], err, out)
	}
	return nil
}

// issuer lets the provider make its issuing key and signs its CSR with the root.
func (s *story) issuer(ctx context.Context) error {
	h := s.hosts[forge]
	if err := h.Deploy(s.path("older", forge)); err != nil {
		return err
	}
	hash, err := bcrypt.GenerateFromPassword([]byte(s.password), bcrypt.DefaultCost)
	if err != nil {
		return err
	}
	users, err := json.Marshal([]map[string]string{{"email": alicesMail, "username": "alice", "userID": "alice", "hash": string(hash)}})
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(h.Dir, "users.hujson"), users, 0o600); err != nil {
		return err
	}
	if err := s.putPassword("swordfish"); err != nil {
		return err
	}
	settings := fmt.Sprintf(`{
  // What this provider may answer is compiled from the flake.
  "policy": %q,
  "state": "provider",
  "cert": {"issuingCertificate": "issuing.crt"},
  "oidc": {"listen": "127.0.0.1:5556", "users": "users.hujson"},
  "config": {"artifacts": %q},
  "file": {"dir": "files"},
}
`, h.Closure(), s.path("published"))
	if err := os.WriteFile(filepath.Join(h.Dir, "provider.hujson"), []byte(settings), 0o600); err != nil {
		return err
	}
	if err := h.Provider(); err != nil {
		return err
	}
	csr := filepath.Join(h.Dir, "provider", "issuing.csr")
	if err := s.until(ctx, "the provider's CSR", func() bool { _, err := os.Stat(csr); return err == nil }); err != nil {
		return err
	}
	if err := h.Stop("provider", syscall.SIGTERM); err != nil {
		return err
	}
	_, err = s.run(ctx, "florctl", "ca", "sign", csr, "--ca-cert", s.path("operator", "ca.crt"), "--ca-key", s.path("operator", "ca.key"), "--out", filepath.Join(h.Dir, "issuing.crt"))
	return err
}

// run runs one of ours, or a command of the machine, and returns what it printed.
func (s *story) run(ctx context.Context, name string, args ...string) (string, error) {
	return local.Run(ctx, s.bin, name, args...)
}
