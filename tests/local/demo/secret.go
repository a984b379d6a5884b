package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/florete/florete/internal/hostdir"
)

// These constants name the need and the file of a secret that the topology mentions but does not
// contain.
const wikisPassword, wikisFile = "file-wiki-smtp-password", "smtp-password"

// putPassword puts the secret into the provider's directory, as an operator would. Only the
// provider can read it.
func (s *demo) putPassword(secret string) error {
	at := filepath.Join(s.hosts[forge].Dir, "files", "wiki", wikisFile)
	if err := os.MkdirAll(filepath.Dir(at), 0o700); err != nil {
		return err
	}
	return os.WriteFile(at, []byte(secret), 0o600)
}

// wikisSecret returns the secret that was delivered to wiki. It also reports whether only the
// account of wiki can read it.
func (s *demo) wikisSecret() (secret string, private bool, err error) {
	h := s.hosts["ursula"]
	info, err := os.Stat(filepath.Join(hostdir.Current(h.Layout().Need(wikisPassword)), wikisFile))
	if err != nil {
		return "", false, err
	}
	secret, err = h.Value(wikisPassword, wikisFile)
	return secret, info.Mode().Perm() == 0o400, err
}

// notified returns how often a unit of ursula was notified.
func (s *demo) notified(unit string) int {
	b, _ := os.ReadFile(s.hosts["ursula"].Log("hook"))
	return strings.Count(string(b), unit)
}

// secret checks that the secret was delivered from the provider to the host of wiki.
func (s *demo) secret() error {
	secret, private, err := s.wikisSecret()
	if err != nil {
		return err
	}
	s.held(&s.laws, "the secret of wiki comes from the provider, for its account alone", secret == "swordfish" && private && s.notified("wiki.service") == 1,
		fmt.Sprintf("%d bytes, private %t", len(secret), private))
	return nil
}

// rotate rotates the secret: it replaces the file at the provider and raises the generation in the
// flake.
func (s *demo) rotate(ctx context.Context) error {
	s.heading("the secret of wiki is replaced, and its generation raised")
	if err := s.putPassword("marlin"); err != nil {
		return err
	}
	notified := s.notified("wiki.service")
	if err := s.publish(ctx, "rotated"); err != nil {
		return err
	}
	if err := s.refetch(ctx, forge); err != nil {
		return err
	}
	if err := s.hosts["ursula"].Deploy(s.Path("rotated", "ursula")); err != nil {
		return err
	}
	if err := s.hosts["ursula"].Activate(); err != nil {
		return err
	}
	err := s.until(ctx, "the new secret", func() bool {
		now, _, err := s.wikisSecret()
		return err == nil && now == "marlin" && s.notified("wiki.service") > notified
	})
	if err != nil {
		return err
	}
	s.held(&s.laws, "a raised generation rotates it and notifies the unit once", s.notified("wiki.service") == notified+1, fmt.Sprintf("notified %d times before, %d now", notified, s.notified("wiki.service")))
	return nil
}
