package server_test

import (
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/internal/trust"
	"github.com/florete/florete/providers/providertest"
	"github.com/florete/florete/providers/server"
	"github.com/florete/florete/tests/kit"
)

// long is a kind with documents that no buffer between two hosts takes.
type long struct{}

func (long) Name() string                         { return "config" }
func (long) Compile(document.Policy) (any, error) { return nil, nil }

func (long) Revocations(context.Context) (*trust.SignedRevocations, int64, error) {
	return nil, 0, nil
}

func (long) Read(context.Context, server.Call, string) (hostapi.Artifact, error) {
	return hostapi.Artifact{Documents: []hostapi.SignedDocument{{Body: strings.Repeat("x", 8<<20)}}}, nil
}

// TestLongDocuments: those of a provider's host are as long as its cluster is large.
func TestLongDocuments(t *testing.T) {
	e := startLong(t)
	a, err := e.Client(ursula).Artifact(t.Context())
	if err != nil || len(a.Documents) != 1 {
		t.Errorf("%d documents, %v", len(a.Documents), err)
	}
}

func startLong(t *testing.T) *providertest.Env {
	e := providertest.NewEnv(t, "ursula", "raishan")
	e.Runs("config", struct{}{}, func(*providertest.Env) server.AnyKind { return server.Documents(long{}) })
	e.Grant(ursula, "documents", "config", map[string]any{})
	e.Start()
	return e
}

// TestSlowReaders: a node that asks and does not read keeps nobody waiting.
func TestSlowReaders(t *testing.T) {
	e := startLong(t)
	svid := e.Issue(ursula, time.Hour)
	const slots = 32
	for range slots {
		c := connect(t, e, svid)
		c.c.NetConn().(*net.TCPConn).SetReadBuffer(4096)
		proof := base64.StdEncoding.EncodeToString([]byte(c.proof(nil)))
		fmt.Fprintf(c.c, "GET %sursula HTTP/1.1\r\nHost: provider\r\n%s: %s\r\n\r\n", hostapi.PathArtifact, hostapi.HeaderDevice, proof)
		// The answer has begun, so it was decided.
		begun := make([]byte, len("HTTP/1.1 200"))
		if _, err := io.ReadFull(c.in, begun); err != nil || string(begun) != "HTTP/1.1 200" {
			t.Fatalf("%q, %v", begun, err)
		}
	}
	_, err := e.Client(kit.ID("node/raishan")).Artifact(t.Context())
	providertest.WantError(t, err, hostapi.CodeNotGranted)
	if _, err := e.Client(ursula).Artifact(t.Context()); err != nil {
		t.Errorf("itself: %v", err)
	}
}
