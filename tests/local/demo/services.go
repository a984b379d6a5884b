package main

import (
	"context"
	"fmt"
	"net"
	"net/http"

	"github.com/florete/florete/tests/kit"
	"github.com/florete/florete/tests/local"
)

// serve runs the programs behind the services of the example cluster.
func (s *demo) serve(ctx context.Context) error {
	outline := &local.SignIn{Page: "outline", Host: s.hosts["ursula"], Need: "oidc-outline", Redirect: "http://outline." + kit.Domain + ".rete:4654/auth/oidc.callback",
		Client: func() (*http.Client, error) { return s.through("ursula", "service/outline") }}
	for address, handler := range map[string]http.Handler{
		"127.0.0.1:4654": outline,
		"127.0.0.1:4655": says("wiki"),
		"127.0.0.1:4657": says("metrics"),
	} {
		l, err := net.Listen("tcp", address)
		if err != nil {
			return fmt.Errorf("service: %w: is another demo running?", err)
		}
		server := &http.Server{Handler: handler}
		go func() { _ = server.Serve(l) }()
		context.AfterFunc(ctx, func() { _ = server.Close() })
	}
	return tellTime(ctx, "127.0.0.1:4656")
}

func says(what string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, what) })
}
