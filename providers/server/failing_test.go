package server_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/florete/florete"
	"github.com/florete/florete/providers/api"
	"github.com/florete/florete/providers/providertest"
	"github.com/florete/florete/providers/server"
)

// flaky is a kind that fails when it is told to.
type flaky struct {
	echo
	fail chan error
	mend chan struct{}
	runs int
}

func (k *flaky) Run(ctx context.Context, up func()) error {
	if k.runs++; k.runs > 1 {
		select {
		case <-k.mend:
		default:
			return errors.New("cannot open swordfish")
		}
	}
	up()
	select {
	case <-ctx.Done():
		return nil
	case err := <-k.fail:
		return err
	}
}

// eventually waits until a request for a kind is refused, or is not.
func eventually(t *testing.T, c *api.Client, r api.Request, refused bool) error {
	t.Helper()
	for until := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		_, err := c.Do(t.Context(), api.PathRegister, r)
		if (err != nil) == refused {
			return err
		}
		if time.Now().After(until) {
			t.Fatalf("got %v, want a refusal: %v", err, refused)
		}
	}
}

// TestKindFails: a kind that fails is out, is reported and is tried again; others serve.
func TestKindFails(t *testing.T) {
	var log buffer
	k := &flaky{fail: make(chan error), mend: make(chan struct{})}
	e := providertest.NewEnv(t, "ursula")
	e.Logger = slog.New(slog.NewTextHandler(&log, nil))
	e.Policy.Kinds["oidc"] = json.RawMessage(`{}`)
	e.Kinds = func(*providertest.Env) []server.Kind { return []server.Kind{k} }
	e.Grant(ursula, "echo", "oidc", map[string]any{"say": "hello"})
	e.Start()
	c := e.Client(ursula)
	r := api.Request{Need: "echo", Serial: providertest.Serial, Generation: 1, Body: json.RawMessage(`{"say":"hello"}`)}
	if _, err := c.Do(t.Context(), api.PathRegister, r); err != nil {
		t.Fatal(err)
	}
	k.fail <- errors.New("the disk is gone")
	err := eventually(t, c, r, true)
	providertest.WantError(t, err, api.Transient, api.CodeUnavailable)
	if !strings.Contains(err.Error(), `kind "oidc" does not run`) || strings.Contains(err.Error(), "swordfish") || strings.Contains(err.Error(), "disk") {
		t.Error(err)
	}
	log.has(t, "the disk is gone", 1)
	log.has(t, "cannot open swordfish", 1)
	if _, err := c.Do(t.Context(), api.PathSVID, renewal(t)); err != nil {
		t.Errorf("another kind: %v", err)
	}
	close(k.mend)
	eventually(t, c, r, false)
	log.has(t, "kind runs again", 1)
}

// picky is a kind that cannot serve any policy before it is mended.
type picky struct {
	echo
	mended chan struct{}
}

func (k *picky) Check(florete.Policy) error {
	select {
	case <-k.mended:
		return nil
	default:
		return errors.New("no such key")
	}
}

// TestKindsThatCannotStart: neither a kind that cannot serve the policy nor one without
// settings keeps others from serving.
func TestKindsThatCannotStart(t *testing.T) {
	k := &picky{mended: make(chan struct{})}
	e := providertest.NewEnv(t, "ursula")
	e.Policy.Kinds["oidc"] = json.RawMessage(`{}`)
	e.Policy.Kinds["file"] = json.RawMessage(`{}`)
	e.Policy.Kinds["config"] = json.RawMessage(`{}`)
	e.Kinds = func(*providertest.Env) []server.Kind { return []server.Kind{k} }
	e.Grant(ursula, "echo", "oidc", map[string]any{"say": "hello"})
	e.Grant(ursula, "secret", "file", map[string]any{"ref": "a"})
	e.Start()
	c := e.Client(ursula)
	r := api.Request{Need: "echo", Serial: providertest.Serial, Generation: 1, Body: json.RawMessage(`{"say":"hello"}`)}
	_, err := c.Do(t.Context(), api.PathRegister, r)
	providertest.WantError(t, err, api.Transient, api.CodeUnavailable)
	secret := api.Request{Need: "secret", Serial: providertest.Serial, Generation: 1, Body: json.RawMessage(`{"ref":"a"}`)}
	_, err = c.Do(t.Context(), api.PathFile, secret)
	providertest.WantError(t, err, api.Transient, api.CodeUnavailable)
	_, err = c.Artifact(t.Context())
	providertest.WantError(t, err, api.Transient, api.CodeUnavailable)
	if _, err := c.Do(t.Context(), api.PathSVID, renewal(t)); err != nil {
		t.Errorf("another kind: %v", err)
	}
	close(k.mended)
	eventually(t, c, r, false)
}
