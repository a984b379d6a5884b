package server_test

import (
	"context"
	"testing"
	"time"

	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/providers/server"
	"github.com/florete/florete/tests/kit/providertest"
)

// brief is a kind whose answers are valid for longer than they are repeated.
type brief struct {
	echo
	repeated time.Duration
}

func (k *brief) Answer(ctx context.Context, _ any, c server.Call) (server.Decision, error) {
	d, err := k.echo.Answer(ctx, nil, c)
	d.Answer.Expires, d.Repeated = c.Now.Add(time.Hour).Unix(), c.Now.Add(k.repeated)
	return d, err
}

// TestRepeated checks that a repeated request is decided again after the time for which answers are
// repeated, even if the old answer is still valid.
func TestRepeated(t *testing.T) {
	for repeated, want := range map[time.Duration]string{time.Minute: "1", -time.Second: "2"} {
		e := providertest.NewEnv(t, "ursula")
		e.Runs("oidc", struct{}{}, func(*providertest.Env) server.AnyKind { return server.Any(&brief{repeated: repeated}) })
		e.Grant(ursula, "echo", "oidc", map[string]any{"word": "hello"})
		e.Start()
		var last hostapi.Answer
		for range 2 {
			var err error
			last, err = e.Client(ursula).Do(t.Context(), hostapi.Path("oidc"), hostapi.Request{
				Need: "echo", Serial: providertest.Serial, Generation: 1, Body: []byte(`{"word":"hello"}`)})
			if err != nil {
				t.Fatal(err)
			}
		}
		if last.Values["n"] != want {
			t.Errorf("repeated for %s: answer %s the second time, want %s", repeated, last.Values["n"], want)
		}
	}
}
