package oidc

import (
	"crypto/rand"
	"maps"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/dexidp/dex/storage"
	"golang.org/x/oauth2"

	"github.com/florete/florete/providers/oidc/dexstore"
	"github.com/florete/florete/providers/sealedstore"
	"github.com/florete/florete/providers/store"
	"github.com/florete/florete/providers/store/etcd"
	"github.com/florete/florete/tests/kit/etcdtest"
)

// newReplicas returns two hosts that share a store and start at the same time.
func newReplicas(t *testing.T) (a, b *fixture) {
	t.Helper()
	cluster, tree, key := etcdtest.Start(t, 1), rand.Text(), must(sealedstore.New(sealedstore.Secret()))
	open := func() (store.Store, *sealedstore.Key) {
		return must(etcd.Open(etcd.Config{Endpoints: cluster.Endpoints(), Tree: tree})), key
	}
	a, b = newHost(t, t.TempDir(), open), newHost(t, t.TempDir(), open)
	var both sync.WaitGroup
	for _, f := range []*fixture{a, b} {
		both.Go(f.start)
	}
	both.Wait()
	return a, b
}

// takes returns a copy of a service. The requests of the copy, and of its user's browser, go to f,
// another replica.
func (f *fixture) takes(s *service) *service {
	there := *s
	there.http = f.client()
	there.http.Jar = s.http.Jar
	return &there
}

func (s *service) exchange(code string) (*oauth2.Token, error) {
	return s.Exchange(s.ctx(), code, oauth2.VerifierOption("verifier"))
}

func (s *service) about(token *oauth2.Token) error {
	_, err := s.provider.UserInfo(s.ctx(), oauth2.StaticTokenSource(token))
	return err
}

// TestReplicas checks that people and services see a single issuer, whichever replica answers.
func TestReplicas(t *testing.T) {
	a, b := newReplicas(t)
	delivered := a.register(1)
	if other := b.register(1); !maps.Equal(delivered, other) {
		t.Fatalf("one replica returns %v, the other %v", delivered, other)
	}
	atA := a.service(delivered)
	atB := b.takes(atA)

	// The sign-in begins at one replica and ends at the other, and the code is exchanged at the
	// first.
	p := atB.submit(atA.begin("state", "verifier"), email, password)
	if p.location == nil {
		t.Fatalf("status %d: %s", p.status, p.text)
	}
	token, err := atA.exchange(p.location.Query().Get("code"))
	if err != nil {
		t.Fatal(err)
	}
	// The keys of the other replica verify the ID token.
	verifier := b.service(delivered).verifier
	raw, _ := token.Extra("id_token").(string)
	if _, err := verifier.Verify(b.service(delivered).ctx(), raw); err != nil {
		t.Errorf("an ID token of the other replica: %v", err)
	}
	for _, s := range []*service{atA, atB} {
		if err := s.about(token); err != nil {
			t.Errorf("access token: %v", err)
		}
	}
	// A token that one replica refreshed can be refreshed by the other.
	for _, s := range []*service{atB, atA, atB} {
		if token, err = s.refresh(token.RefreshToken); err != nil {
			t.Fatal(err)
		}
	}
}

// TestReplicasKeys checks that replicas that start together sign with the same key, and that a
// rotation by one replica applies to all.
func TestReplicasKeys(t *testing.T) {
	a, b := newReplicas(t)
	delivered := a.register(1)
	ids := func() (ids []string) {
		for _, f := range []*fixture{a, b} {
			s := f.service(delivered)
			token, err := s.exchange(s.signIn("state", "verifier"))
			if err != nil {
				t.Fatal(err)
			}
			raw, _ := token.Extra("id_token").(string)
			for _, by := range []*fixture{a, b} {
				s := by.service(delivered)
				if _, err := s.provider.Verifier(&oidc.Config{ClientID: delivered["clientId"]}).Verify(s.ctx(), raw); err != nil {
					t.Errorf("a token of one replica, by the keys of another: %v", err)
				}
			}
			header, _, _ := strings.Cut(raw, ".")
			ids = append(ids, header)
		}
		return ids
	}
	first := ids()
	if first[0] != first[1] {
		t.Errorf("replicas sign with different keys")
	}
	// The key has expired, and the first replica that notices it rotates.
	db := dexstore.New(a.db, a.p.cfg.Key)
	if err := db.UpdateKeys(t.Context(), func(k storage.Keys) (storage.Keys, error) {
		k.NextRotation = time.Now().Add(-time.Second)
		return k, nil
	}); err != nil {
		t.Fatal(err)
	}
	b.restart()
	second := ids()
	if second[0] != second[1] || second[0] == first[0] {
		t.Errorf("after the rotation replicas sign with %v, before with %v", second, first)
	}
}

// TestReplicasReplayed checks that a code that was exchanged at one replica and is presented at
// another ends the tokens that it gave, at both replicas.
func TestReplicasReplayed(t *testing.T) {
	a, b := newReplicas(t)
	atA := a.service(a.register(1))
	atB := b.takes(atA)
	code := atA.signIn("state", "verifier")
	token, err := atA.exchange(code)
	if err != nil {
		t.Fatal(err)
	}
	if err := atB.about(token); err != nil {
		t.Fatalf("access token: %v", err)
	}
	_, err = atB.exchange(code)
	refused(t, "a code that was spent at the other replica", err, "invalid_grant")
	for what, s := range map[string]*service{"where it was exchanged": atA, "where it was presented again": atB} {
		if err := s.about(token); err == nil || !strings.Contains(err.Error(), "401") {
			t.Errorf("access token, %s: %v", what, err)
		}
		if _, err := s.refresh(token.RefreshToken); err == nil {
			t.Errorf("refresh token, %s: it goes on", what)
		}
	}

	// A refresh token that the other replica has replaced.
	first, err := atA.exchange(atA.signIn("state", "verifier"))
	if err != nil {
		t.Fatal(err)
	}
	id, _ := presented(first.RefreshToken)
	db := dexstore.New(a.db, a.p.cfg.Key)
	age := func() {
		t.Helper()
		if err := db.UpdateRefreshToken(t.Context(), id, func(r storage.RefreshToken) (storage.RefreshToken, error) {
			r.LastUsed = r.LastUsed.Add(-2 * refreshAgain)
			return r, nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	age()
	second, err := atB.refresh(first.RefreshToken)
	if err != nil {
		t.Fatal(err)
	}
	age()
	if _, err := atA.refresh(first.RefreshToken); err == nil {
		t.Error("a token is taken in whose place another replica gave another")
	}
	for _, s := range []*service{atA, atB} {
		if _, err := s.refresh(second.RefreshToken); err == nil {
			t.Error("the newest token of a family outlives a replay at another replica")
		}
	}
}

// TestReplicasClock checks that a replica can end tokens that were issued by a replica whose clock
// is ahead.
func TestReplicasClock(t *testing.T) {
	a, b := newReplicas(t)
	delivered := a.register(1)
	atA := a.service(delivered)
	code := atA.signIn("state", "verifier")
	token, err := atA.exchange(code)
	if err != nil {
		t.Fatal(err)
	}
	id, _ := presented(token.RefreshToken)
	db := dexstore.New(a.db, a.p.cfg.Key)
	issued := time.Now().Add(10 * time.Second)
	if err := db.UpdateRefreshToken(t.Context(), id, func(r storage.RefreshToken) (storage.RefreshToken, error) {
		r.LastUsed = issued
		return r, nil
	}); err != nil {
		t.Fatal(err)
	}
	_, err = b.takes(atA).exchange(code)
	refused(t, "a code that was spent at the other replica", err, "invalid_grant")
	ended, err := tokens{db: b.db}.ended(t.Context(), delivered["clientId"], "u-1", issued.Truncate(time.Second))
	if err != nil || !ended {
		t.Errorf("what was issued ten seconds ahead: ended is %v, %v", ended, err)
	}
}

// TestReplicasCodeAtOnce checks that if several clients present a code to two replicas at the same
// time, at most one gets tokens, and these are soon ended.
func TestReplicasCodeAtOnce(t *testing.T) {
	a, b := newReplicas(t)
	atA := a.service(a.register(1))
	atB := b.takes(atA)
	for range 10 {
		code := atA.signIn("state", "verifier")
		var got [2]*oauth2.Token
		var both sync.WaitGroup
		for i, s := range []*service{atA, atB} {
			both.Go(func() { got[i], _ = s.exchange(code) })
		}
		both.Wait()
		if got[0] != nil && got[1] != nil {
			t.Error("two replicas exchanged one code")
		}
		for i, other := range []*service{atB, atA} {
			if got[i] == nil {
				continue
			}
			if _, err := other.refresh(got[i].RefreshToken); err == nil {
				t.Error("tokens of a code that was presented twice go on")
			}
		}
	}
}
