package server_test

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"florete/providers/api"
	"florete/providers/providertest"
)

// TestShare: who opens connections without end, and says nothing, keeps others neither
// waiting nor out.
func TestShare(t *testing.T) {
	const most = 256
	e, r := start(t, new(echo))
	var silent []net.Conn
	for range most {
		c, err := e.Dial(t.Context(), "tcp", "")
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		silent = append(silent, c)
	}
	over, err := e.Dial(t.Context(), "tcp", "")
	if err != nil {
		t.Fatal(err)
	}
	defer over.Close()
	over.SetDeadline(time.Now().Add(5 * time.Second))
	if _, err := over.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("one more than %d: %v, want its end", most, err)
	}
	last := silent[most-1]
	last.SetDeadline(time.Now().Add(100 * time.Millisecond))
	if _, err := last.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("the last of %d: %v, want it to be open", most, err)
	}

	ask := func(from string) error {
		c := e.Client(ursula)
		dial := c.Dial
		c.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
			if from == "" {
				return dial(ctx, network, address)
			}
			to := over.RemoteAddr().String()
			return (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}).DialContext(ctx, network, to)
		}
		_, err := c.Do(t.Context(), api.PathRegister, r)
		return err
	}
	if err := ask("127.0.0.2"); err != nil {
		t.Errorf("another address: %v", err)
	}
	providertest.WantError(t, ask(""), api.Transient, api.CodeUnavailable)
	for _, c := range silent {
		c.Close()
	}
	for until := time.Now().Add(5 * time.Second); ask("") != nil; time.Sleep(time.Millisecond) {
		if time.Now().After(until) {
			t.Fatal("is kept out after it closed its connections")
		}
	}
}
