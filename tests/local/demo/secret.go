package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/florete/florete/internal/hostdir"
)

// wikisPassword is the need that delivers a secret which the topology only names.
const wikisPassword, wikisFile = "file-wiki-smtp-password", "smtp-password"

// putPassword puts the secret into the provider's directory as an operator would, readable by the
// provider alone.
func (s *demo) putPassword(secret string) error {
	at := filepath.Join(s.hosts[forge].Dir, "files", "wiki", wikisFile)
	if err := os.MkdirAll(filepath.Dir(at), 0o700); err != nil {
		return err
	}
	return os.WriteFile(at, []byte(secret), 0o600)
}

// wikisSecret returns the secret delivered to wiki, and whether only its account can read it.
func (s *demo) wikisSecret() (secret string, private bool, err error) {
	h := s.hosts["ursula"]
	info, err := os.Stat(filepath.Join(hostdir.Current(h.Layout().Need(wikisPassword)), wikisFile))
	if err != nil {
		return "", false, err
	}
	secret, err = h.Value(wikisPassword, wikisFile)
	return secret, info.Mode().Perm() == 0o400, err
}

// notified returns the number of notifications to a unit of ursula.
func (s *demo) notified(unit string) int {
	b, _ := os.ReadFile(s.hosts["ursula"].Log("hook"))
	return strings.Count(string(b), unit)
}

// secret checks that the secret has come from the provider to the host of wiki.
func (s *demo) secret() error {
	secret, private, err := s.wikisSecret()
	if err != nil {
		return err
	}
	s.held(&s.laws, "the secret of wiki comes from the provider, for its account alone", secret == "swordfish" && private && s.notified("wiki.service") == 1,
		fmt.Sprintf("%d bytes, private %t", len(secret), private))
	return nil
}

// rotate replaces the secret: with another file at the provider, and a raised generation in the
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
