package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/florete/florete/internal/hostdir"
)

// wikisPassword is the ID of the need for a secret, and wikisFile is the name of the secret's file.
// The topology names the secret but does not contain it.
const wikisPassword, wikisFile = "file-wiki-smtp-password", "smtp-password"

// putPassword writes the secret to the provider's directory, as an operator would do. Only the
// provider can read the file.
func (s *demo) putPassword(secret string) error {
	at := filepath.Join(s.hosts[forge].Dir, "files", "wiki", wikisFile)
	if err := os.MkdirAll(filepath.Dir(at), 0o700); err != nil {
		return err
	}
	return os.WriteFile(at, []byte(secret), 0o600)
}

// wikisSecret returns the secret that was delivered for the service wiki. It also reports whether
// the account of wiki is the only one that can read it.
func (s *demo) wikisSecret() (secret string, private bool, err error) {
	h := s.hosts["ursula"]
	info, err := os.Stat(filepath.Join(hostdir.Current(h.Layout().Need(wikisPassword)), wikisFile))
	if err != nil {
		return "", false, err
	}
	secret, err = h.Value(wikisPassword, wikisFile)
	return secret, info.Mode().Perm() == 0o400, err
}

// notified returns how often a unit on the host ursula was restarted because its files had changed.
func (s *demo) notified(unit string) int {
	b, _ := os.ReadFile(s.hosts["ursula"].Log("hook"))
	return strings.Count(string(b), unit)
}

// secret checks that the provider's secret was delivered to the host of the service wiki.
func (s *demo) secret() error {
	secret, private, err := s.wikisSecret()
	if err != nil {
		return err
	}
	s.held(&s.laws, "the secret of wiki comes from the provider, for its account alone", secret == "swordfish" && private && s.notified("wiki.service") == 1,
		fmt.Sprintf("%d bytes, private %t", len(secret), private))
	return nil
}

// rotate rotates the secret. It replaces the file at the provider and deploys the revision with a
// higher generation.
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
