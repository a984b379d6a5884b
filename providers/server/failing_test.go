package server_test

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/providers/server"
	"github.com/florete/florete/tests/kit"
	"github.com/florete/florete/tests/kit/providertest"
)

// working is a kind that has a background task.
type working struct {
	echo
	run func(ctx context.Context, ready func()) error
}

func (k *working) Run(ctx context.Context, ready func()) error { return k.run(ctx, ready) }

// TestKindFails checks that the server is ready when its kind is ready, and ends with the error of
// the kind.
func TestKindFails(t *testing.T) {
	fail := make(chan error)
	k := &working{run: func(_ context.Context, ready func()) error {
		ready()
		return <-fail
	}}
	e, _ := start(t, new(echo))
	ready := make(chan bool)
	policies, err := server.OpenPolicies(e.PolicyDir(), e.Revocations(), "oidc", slog.New(slog.DiscardHandler)) // each server has separate policies
	if err != nil {
		t.Fatal(err)
	}
	s, err := server.New(server.Config{
		Policies: policies, Kind: server.Any(k), Store: e.Store, Key: e.Key, Certificate: e.Server.Certificate, Ready: func() { close(ready) },
	})
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error)
	go func() { ended <- s.Serve(t.Context(), l) }()
	<-ready
	gone := errors.New("the disk is gone")
	fail <- gone
	if err := <-ended; !errors.Is(err, gone) {
		t.Errorf("ended with %v, want %v", err, gone)
	}
}

// TestOtherKinds checks that a process answers only for its kind, and refuses a policy of another
// kind.
func TestOtherKinds(t *testing.T) {
	e, r := start(t, new(echo))
	_, err := e.Post(t, e.Issue(ursula, time.Hour), "/cert/request", "", kit.JSON(r))
	if err == nil || !strings.Contains(err.Error(), `no such endpoint, want one of kind "oidc": other kinds have addresses of their own in the manifest`) {
		t.Error(err)
	}
	e.Grant(ursula, "file-a", "cert", map[string]any{"word": "hello"})
	e.Publish(providertest.Serial + 1)
	e.Restart()
	r.Need = "file-a"
	_, err = e.Client(ursula).Do(t.Context(), hostapi.Path("oidc"), r)
	if err == nil || !strings.Contains(err.Error(), `need "file-a" of kind "oidc": the policy does not grant it`) {
		t.Error(err)
	}
	if _, err := server.New(server.Config{Policies: e.Policies, Kind: server.Any(issuer(t, e))}); err == nil || !strings.Contains(err.Error(), `kind "cert": the policy was opened for kind "oidc"`) {
		t.Error(err)
	}
}
