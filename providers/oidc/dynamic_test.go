package oidc

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
)

// TestManagedElsewhere checks that no request is sent to a management address of a client that only
// this host can reach.
func TestManagedElsewhere(t *testing.T) {
	t.Parallel()
	var reached, managed atomic.Int64
	inside := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached.Add(1) }))
	defer inside.Close()
	issuer := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { managed.Add(1) }))
	defer issuer.Close()
	for _, e := range []endpoint{{issuer.URL + "/register", "", "https://op.example.org"}, {"https://op.example.org/register", "", issuer.URL}} {
		var refused *refusedError
		if err := e.end(t.Context(), made{URI: inside.URL + "/clients/a", Token: "token"}, true); !errors.As(err, &refused) || refused.status != http.StatusNotImplemented {
			t.Errorf("managed elsewhere: %v", err)
		}
		if err := e.end(t.Context(), made{URI: issuer.URL + "/clients/a", Token: "token"}, true); err != nil {
			t.Errorf("managed at the issuer: %v", err)
		}
	}
	if reached.Load() != 0 || managed.Load() != 2 {
		t.Errorf("%d requests elsewhere, %d at the issuer, want 0 and 2", reached.Load(), managed.Load())
	}
}
