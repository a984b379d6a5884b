package forward_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/florete/florete/agent/forward"
	"github.com/florete/florete/internal/hostdir"
)

// written is a log that closes its channel when the first line is written.
type written struct {
	bytes.Buffer
	once  sync.Once
	first chan struct{}
}

func (w *written) Write(b []byte) (int, error) {
	w.once.Do(func() { close(w.first) })
	return w.Buffer.Write(b)
}

// TestAwait checks that the agent waits for a state directory that it cannot create itself. It must
// report the wait once, and use the directory as soon as it exists.
func TestAwait(t *testing.T) {
	parent := filepath.Join(t.TempDir(), "lib")
	if err := os.WriteFile(parent, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	state := hostdir.Layout(filepath.Join(parent, "florete"))
	out := &written{first: make(chan struct{})}
	log := slog.New(slog.NewTextHandler(out, nil))
	ended := make(chan error)
	go func() { ended <- forward.AwaitState(t.Context(), state, log) }()
	select {
	case <-out.first:
	case err := <-ended:
		t.Fatalf("ended with %v below a file", err)
	}
	if err := os.Remove(parent); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(string(state)); err != nil || !info.IsDir() {
		t.Errorf("%v, %v", info, err)
	}
	if n := strings.Count(out.String(), "waiting for the state directory"); n != 1 {
		t.Errorf("reported %d times:\n%s", n, out.String())
	}
	if err := forward.AwaitState(t.Context(), state, log); err != nil || strings.Count(out.String(), "\n") != 2 {
		t.Errorf("%v for a directory that is there:\n%s", err, out.String())
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := forward.AwaitState(ctx, hostdir.Layout(filepath.Join(os.DevNull, "florete")), log); !errors.Is(err, context.Canceled) {
		t.Errorf("stopped: %v", err)
	}
}
