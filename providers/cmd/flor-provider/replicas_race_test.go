package main

import (
	"fmt"
	"maps"
	"sync"
	"testing"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/providers/oidc"
	"github.com/florete/florete/providers/server"
	"github.com/florete/florete/tests/kit"
)

// TestReplicasRaced checks 200 times that if a request reaches two replicas at the same time, one
// decides it and both return the same answer.
func TestReplicasRaced(t *testing.T) {
	if testing.Short() {
		t.Skip("left out by -short: it takes long")
	}
	c := newReplicas(t, 3, "cert")
	a, b := c.add("a"), c.add("b")
	c.deploy(a, b)
	for _, r := range c.all {
		r.run = start(t, r.settings)
	}
	key := kit.NewKey()
	c.enrol(a, key)
	const needs, rounds = 8, 25
	var all sync.WaitGroup
	for i := range needs {
		all.Go(func() {
			for range rounds {
				need := request(fmt.Sprintf("cert-service-s%d", i), kit.ID(fmt.Sprintf("service/s%d", i)), kit.NewKey())
				answers := c.both(a, b, "cert", need)
				if !maps.Equal(answers[0].Values, answers[1].Values) {
					t.Errorf("need %s: two answers to one request", need.Need)
				}
			}
		})
	}
	all.Wait()
	if granted := c.decided(b, "cert"); len(granted) != 1+needs*rounds {
		t.Errorf("%d requests were granted, want %d", len(granted), 1+needs*rounds)
	}
}

// TestReplicasOIDC checks that a client has one secret, whichever replica returns it, and one
// rotation, however many replicas get the request at the same time.
func TestReplicasOIDC(t *testing.T) {
	const clients = 8
	c := newReplicas(t, 3, "cert", "oidc")
	ursula := kit.ID("node/ursula")
	body := func(i int) []byte {
		return kit.JSON(oidc.Request{Issuer: "http://auth.demo.flor.rete", Service: kit.ID(fmt.Sprintf("service/s%d", i)), RedirectURIs: []string{fmt.Sprintf("http://s%d.demo.flor.rete/", i)}})
	}
	need := func(i, rotation int) hostapi.Request {
		return hostapi.Request{Need: fmt.Sprintf("oidc-s%d", i), Serial: 1000, Generation: 1, Rotation: rotation, Body: body(i)}
	}
	c.change = func(p *document.Policy) {
		for i := range clients {
			p.Grants = append(p.Grants, document.Grant{Caller: ursula, Need: need(i, 0).Need, Kind: "oidc", Request: body(i), Generation: 1})
		}
	}
	a, b := c.add("a"), c.add("b")
	c.deploy(a, b)
	for _, r := range c.all {
		r.run = start(t, r.settings)
		startKind(t, "oidc", r.settings)
	}
	c.enrol(a, kit.NewKey())
	same := func(i, rotation int) map[string]string {
		t.Helper()
		answers := c.both(a, b, "oidc", need(i, rotation))
		if !maps.Equal(answers[0].Values, answers[1].Values) {
			t.Errorf("client %d, rotation %d: replicas return %v and %v", i, rotation, answers[0].Values, answers[1].Values)
		}
		return answers[0].Values
	}
	for i := range clients {
		first := same(i, 0)
		if first["clientId"] != fmt.Sprintf("s%d.demo.flor.rete", i) || first["clientSecret"] == "" {
			t.Errorf("client %d: %v", i, first)
		}
		rotated := same(i, 1)
		if rotated["rotation"] != "1" || rotated["clientSecret"] == first["clientSecret"] {
			t.Errorf("client %d: %v rotated to %v", i, first, rotated)
		}
		if now := same(i, 0); now["clientSecret"] != rotated["clientSecret"] {
			t.Errorf("client %d: %v after the rotation to %v", i, now, rotated)
		}
	}
	made := map[string]int{}
	for _, row := range audit(t, a.settings) {
		if row.Outcome == server.Granted && !row.Replayed && row.Detail["rotation"] == "1" {
			made[row.Key]++
		}
	}
	for i := range clients {
		key, err := need(i, 1).Key(ursula)
		if err != nil || made[key] != 1 {
			t.Errorf("client %d: rotated %d times, %v, want once", i, made[key], err)
		}
	}
}
