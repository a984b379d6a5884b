package whois_test

import (
	"testing"

	"github.com/florete/florete/agent/whois"
	"github.com/florete/florete/internal/hostdir"
)

// TestBeside checks that agents with sockets in the same directory have different whois sockets.
func TestBeside(t *testing.T) {
	for status, want := range map[string]string{
		hostdir.Instance("").Agent():     "/run/florete/agent/whois.sock",
		hostdir.Instance("blue").Agent(): "/run/florete_blue/agent/whois.sock",
		"/tmp/ursula.sock":               "/tmp/ursulawhois.sock",
		"relative":                       "relativewhois.sock",
	} {
		if got := whois.Beside(status); got != want {
			t.Errorf("%s: got %s, want %s", status, got, want)
		}
	}
}
