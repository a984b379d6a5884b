package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/tests/local"
)

const (
	forge      = "drhorrible" // host that runs every provider
	newcomer   = "laptop"     // host that is absent in the first revision
	alicesMail = "alice@demo.flor"
)

var hostNames = []string{forge, "raishan", "ursula", "mgmt01", newcomer}

// prepare does the work of an operator before the cluster starts. It creates the keys, the root CA,
// three revisions of the flake, and the issuing certificate of the provider.
func (s *demo) prepare(ctx context.Context) error {
	var hosts []*local.Host
	for _, name := range hostNames {
		hosts = append(hosts, s.hosts[name])
	}
	facts, err := s.Begin(ctx, "demo-1", hosts...)
	if err != nil {
		return err
	}
	if err := s.Flake(ctx, filepath.Join(s.Repo, "tests", "cluster"), facts); err != nil {
		return err
	}
	if err := s.revisions(ctx); err != nil {
		return err
	}
	d, err := document.Read(s.Path("newer", forge), document.DocManifest)
	if err != nil {
		return err
	}
	s.serial = d.Envelope.Serial
	return s.issuer(ctx)
}

// revisions commits and compiles three revisions of the cluster. The first revision lacks the host
// in newcomer. The last one has a higher generation of a secret. When the hosts start, the provider
// still has the first revision.
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

// issuer makes the provider generate its issuing key, and signs the CSR for this key with the root.
func (s *demo) issuer(ctx context.Context) error {
	h := s.hosts[forge]
	if err := h.Deploy(s.Path("older", forge)); err != nil {
		return err
	}
	if err := h.People(s.password, "alice"); err != nil {
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
