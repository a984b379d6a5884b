package oidc

import (
	"errors"
	"net"
	"testing"
	"time"

	"florete/providers/oidc/dexstore"

	"github.com/dexidp/dex/storage"
)

// TestPending: sign-ins that nobody finishes have a bound, and make room when they end,
// either way.
func TestPending(t *testing.T) {
	f := newFixture(t)
	p := pending{dexstore.New(f.db, f.p.cfg.Key), &f.p.pending}
	begin := func(id string) error {
		return p.CreateAuthRequest(t.Context(), storage.AuthRequest{ID: id, Expiry: time.Now().Add(loginsLive)})
	}
	f.p.pending.Store(maxPending - 1)
	if err := begin("last"); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := begin("more"); !errors.Is(err, errPending) {
			t.Errorf("one more than %d: %v", maxPending, err)
		}
	}
	s := f.service(f.register(1))
	if page := s.begin("state", "verifier"); page.form != nil {
		t.Errorf("one more than %d is shown the form", maxPending)
	}
	if err := p.DeleteAuthRequest(t.Context(), "last"); err != nil {
		t.Fatal(err)
	}
	if page := s.begin("state", "verifier"); page.form == nil {
		t.Errorf("after one was finished: status %d", page.status)
	}
	if err := begin("more"); !errors.Is(err, errPending) {
		t.Errorf("one more than %d: %v", maxPending, err)
	}
	if _, err := p.GarbageCollect(t.Context(), time.Now().Add(2*loginsLive)); err != nil {
		t.Fatal(err)
	}
	if err := begin("more"); err != nil {
		t.Errorf("after one has expired: %v", err)
	}
	f.p.pending.Store(0)
	if err := begin("more"); !errors.Is(err, storage.ErrAlreadyExists) || f.p.pending.Load() != 0 {
		t.Errorf("the same again: %v, %d under way", err, f.p.pending.Load())
	}
}

// TestConnections: people's connections leave room for those of hosts.
func TestConnections(t *testing.T) {
	f := newFixture(t)
	var open []net.Conn
	defer func() {
		for _, c := range open {
			c.Close()
		}
	}()
	for range connections {
		c, err := net.Dial("tcp", f.listen)
		if err != nil {
			t.Fatal(err)
		}
		open = append(open, c)
	}
	one, err := net.Dial("tcp", f.listen)
	if err != nil {
		t.Fatal(err)
	}
	defer one.Close()
	answers := func() bool {
		one.SetDeadline(time.Now().Add(200 * time.Millisecond))
		_, err := one.Read(make([]byte, 1))
		return err == nil
	}
	if _, err := one.Write([]byte("GET /robots.txt HTTP/1.1\r\nHost: auth\r\n\r\n")); err != nil {
		t.Fatal(err)
	}
	if answers() {
		t.Errorf("connection %d is served", connections+1)
	}
	open[0].Close()
	for until := time.Now().Add(5 * time.Second); !answers(); {
		if time.Now().After(until) {
			t.Fatal("is not served after another was closed")
		}
	}
}
