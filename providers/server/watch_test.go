package server_test

import (
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"iter"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/providers/providertest"
	"github.com/florete/florete/providers/server"
	"github.com/florete/florete/tests/kit"
)

// watchedLong has long documents, of which there are others from the beginning.
type watchedLong struct{ long }

func (watchedLong) Changes(ctx context.Context) iter.Seq2[int64, error] {
	return func(yield func(int64, error) bool) {
		if yield(1, nil) {
			<-ctx.Done()
		}
	}
}

// TestWatchNeverRead: a node that waits for documents and does not receive them is cut off.
func TestWatchNeverRead(t *testing.T) {
	t.Parallel()
	e := providertest.NewEnv(t, "ursula")
	e.Runs("config", struct{}{}, func(*providertest.Env) server.AnyKind { return server.Documents(watchedLong{}) })
	e.Grant(ursula, "documents", "config", map[string]any{})
	e.Start()
	c := connect(t, e, e.Issue(ursula, time.Hour))
	c.c.NetConn().(*net.TCPConn).SetReadBuffer(4096)
	proof := base64.StdEncoding.EncodeToString([]byte(c.proof(nil)))
	fmt.Fprintf(c.c, "GET %s?from=0 HTTP/1.1\r\nHost: provider\r\n%s: %s\r\n%s: \"others\"\r\n\r\n", hostapi.PathWatch, hostapi.HeaderDevice, proof, hostapi.HeaderHas)
	begun := make([]byte, len("HTTP/1.1 200"))
	if _, err := io.ReadFull(c.in, begun); err != nil || string(begun) != "HTTP/1.1 200" {
		t.Fatalf("%q, %v", begun, err)
	}
	kit.Eventually(t, "the connection to be closed", func() bool {
		_, err := c.c.NetConn().Write([]byte("x"))
		return err != nil
	})
}

// watchedSame has nothing new for anybody.
type watchedSame struct{ watchedLong }

func (watchedSame) Read(context.Context, server.Call, string) (hostapi.Artifact, error) {
	return hostapi.Artifact{NotModified: true}, nil
}

// TestWatchGoesOn: the connection of a node that waited in vain carries its next requests.
func TestWatchGoesOn(t *testing.T) {
	t.Parallel()
	e := providertest.NewEnv(t, "ursula")
	e.Watch = 50 * time.Millisecond
	e.Runs("config", struct{}{}, func(*providertest.Env) server.AnyKind { return server.Documents(watchedSame{}) })
	e.Grant(ursula, "documents", "config", map[string]any{})
	e.Start()
	c := connect(t, e, e.Issue(ursula, time.Hour))
	proof := base64.StdEncoding.EncodeToString([]byte(c.proof(nil)))
	for range 3 {
		fmt.Fprintf(c.c, "GET %s?from=0 HTTP/1.1\r\nHost: provider\r\n%s: %s\r\n%s: \"same\"\r\n\r\n", hostapi.PathWatch, hostapi.HeaderDevice, proof, hostapi.HeaderHas)
		answer, err := http.ReadResponse(c.in, nil)
		if err != nil {
			t.Fatal(err)
		}
		if answer.StatusCode != http.StatusNotModified || answer.Header.Get(hostapi.HeaderRevision) == "" || answer.Close {
			t.Errorf("got %s, %v, want that the connection goes on", answer.Status, answer.Header)
		}
	}
}
