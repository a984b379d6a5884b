package main

import (
	"context"
	"encoding/json"
	"os"
	"os/user"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/crypto/bcrypt"

	"github.com/florete/florete"
	"github.com/florete/florete/tests/kit"
	"github.com/florete/florete/tests/local"
)

const (
	forge      = "drhorrible" // runs every provider
	newcomer   = "laptop"     // the host that the first revision does not have
	alicesMail = "alice@demo.flor"
)

var hostNames = []string{forge, "raishan", "ursula", "mgmt01", newcomer}

// prepare does what an operator does once: keys, root CA, three revisions of the
// flake, the issuing certificate.
func (s *demo) prepare(ctx context.Context) error {
	if err := s.Checkout(filepath.Join(s.Repo, "tests", "cluster")); err != nil {
		return err
	}
	if _, err := s.Run(ctx, "florctl", "ca", "init", "--trust-domain", kit.Domain, "--out", s.Path("operator")); err != nil {
		return err
	}
	if err := s.keys(ctx); err != nil {
		return err
	}
	if err := s.revisions(ctx); err != nil {
		return err
	}
	d, err := florete.Read(s.Path("newer", forge), florete.DocManifest)
	if err != nil {
		return err
	}
	s.serial = d.Envelope.Serial
	return s.issuer(ctx)
}

// keys makes what each machine has of its own and puts the public halves where
// the topology reads them.
func (s *demo) keys(ctx context.Context) error {
	account, err := user.Current()
	if err != nil {
		return err
	}
	facts := struct {
		Account     string            `json:"account"`
		Keys        []string          `json:"keys"`
		SSHHostKeys map[string]string `json:"sshHostKeys"`
	}{Account: account.Username, SSHHostKeys: map[string]string{}}

	public, err := s.SigningKey(ctx, "demo-1")
	if err != nil {
		return err
	}
	facts.Keys = []string{public}

	for _, name := range hostNames {
		h := s.hosts[name]
		if err := os.MkdirAll(h.Dir, 0o700); err != nil {
			return err
		}
		facts.SSHHostKeys[name] = kit.Authorized(kit.WriteHostKey(h.HostKey()))
		hook := "#!/bin/sh\necho \"$@\" >> \"" + h.Log("hook") + "\"\n"
		if err := os.WriteFile(filepath.Join(h.Dir, "hook"), []byte(hook), 0o700); err != nil {
			return err
		}
	}
	b, err := json.MarshalIndent(facts, "", "  ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(s.Path("cluster", "facts.json"), b, 0o644); err != nil {
		return err
	}
	return local.Copy(s.Path("operator", "ca.crt"), s.Path("cluster", "ca.crt"))
}

// revisions commits the cluster, first without the newcomer, last with a raised
// generation of a secret, and compiles each: the older one is what the provider
// will still have when the hosts start.
func (s *demo) revisions(ctx context.Context) error {
	entry := s.Path("cluster", "hosts", newcomer+".nix")
	held, err := os.ReadFile(entry)
	if err != nil {
		return err
	}
	now := time.Now()
	services := s.Path("cluster", "services.nix")
	written, err := os.ReadFile(services)
	if err != nil {
		return err
	}
	const ref = `ref = "wiki/smtp-password";`
	rotated := strings.Replace(string(written), ref, ref+" generation = 2;", 1)
	if err := s.Lock(ctx); err != nil {
		return err
	}
	if err := os.Remove(entry); err != nil {
		return err
	}
	if err := s.Commit(ctx, now.Add(-2*time.Minute), "the cluster", "older"); err != nil {
		return err
	}
	if err := os.WriteFile(entry, held, 0o644); err != nil {
		return err
	}
	if err := s.Commit(ctx, now.Add(-time.Minute), "add "+newcomer, "newer"); err != nil {
		return err
	}
	if err := os.WriteFile(services, []byte(rotated), 0o644); err != nil {
		return err
	}
	return s.Commit(ctx, now, "rotate the password of wiki", "rotated")
}

// issuer lets the provider make its issuing key and signs its CSR with the root.
func (s *demo) issuer(ctx context.Context) error {
	h := s.hosts[forge]
	if err := h.Deploy(s.Path("older", forge)); err != nil {
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
	const settings = `{
  // What this provider may answer is compiled from the flake, and in force there.
  "activation": "state",
  "state": "provider",
  "cert": {"issuingCertificate": "issuing.crt"},
  "oidc": {"listen": "127.0.0.1:5556", "users": "users.hujson"},
  "file": {"dir": "files"},
}
`
	if err := os.WriteFile(filepath.Join(h.Dir, "provider.hujson"), []byte(settings), 0o600); err != nil {
		return err
	}
	return s.Issue(ctx, h)
}
