package main

import (
	"context"
	"errors"
	"io"
	"testing"

	"github.com/florete/florete/activation/devicekey"
	"github.com/florete/florete/activation/fetch"
	"github.com/florete/florete/agent/report"
	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/internal/hostdir"
	"github.com/florete/florete/tests/kit"
	"github.com/florete/florete/tests/kit/agenttest"
)

// TestJoinInterrupted checks that flor join prints a clear message when it is interrupted. This
// must hold both during a request and while it waits for the next one.
func TestJoinInterrupted(t *testing.T) {
	token, err := hostapi.NewJoinToken("drhorrible")
	if err != nil {
		t.Fatal(err)
	}
	h := &fetch.Host{Layout: hostdir.Layout(t.TempDir()), Roots: kit.NewCA().Roots(), TPM: devicekey.None, Manifest: document.Manifest{
		Host: "elm", Identity: document.Identity{ID: kit.ID("node/elm"), Joins: true},
		Providers: map[string]map[string]document.Provider{"drhorrible": {document.KindConfig: {
			ID: kit.ProviderID("drhorrible", "config"), Addresses: document.Addresses{agenttest.Loopback().String() + ":9"},
		}}},
	}}
	if err := h.BeginJoin(token.String(), report.FindFacts(t.TempDir(), report.Declared)); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := awaitJoin(ctx, h, io.Discard); !errors.Is(err, errInterrupted) {
		t.Errorf("before the request: %v", err)
	}
	ctx, cancel = context.WithCancel(t.Context())
	out, in := io.Pipe()
	ended := make(chan error)
	go func() { ended <- awaitJoin(ctx, h, in) }()
	if _, err := out.Read(make([]byte, 1<<10)); err != nil { // wait for the message of the first request
		t.Fatal(err)
	}
	cancel()
	out.Close()
	if err := <-ended; !errors.Is(err, errInterrupted) {
		t.Errorf("between two requests: %v", err)
	}
}
