package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/internal/hostdir"
	"github.com/florete/florete/internal/trust"
	"github.com/florete/florete/providers/ca"
	"github.com/florete/florete/providers/distribution"
	"github.com/florete/florete/providers/settings"
	"github.com/florete/florete/tests/kit"
	"github.com/florete/florete/tests/kit/providertest"
)

// TestDelivered checks that a kind other than "cert" presents the SVID that activation delivers: it
// waits for the SVID, refuses an SVID of another identity, and uses a new SVID at once.
func TestDelivered(t *testing.T) {
	dir := t.TempDir()
	if err := root(dir); err != nil {
		t.Fatal(err)
	}
	r, err := ca.Load(filepath.Join(dir, "ca.crt"), filepath.Join(dir, "ca.key"))
	if err != nil {
		t.Fatal(err)
	}
	if err := policy(dir, []string{"config"}); err != nil {
		t.Fatal(err)
	}
	d, err := document.Read(hostdir.Current(filepath.Join(dir, "activation", "documents")), document.DocPolicy)
	if err != nil {
		t.Fatal(err)
	}
	p := d.Policy()
	self := p.Provider["config"]
	need := filepath.Join(dir, "activation", "needs", "cert-service-florete-provider-config")
	by := &kit.CA{Root: r, Issuing: r}
	by.Deliver(need, kit.ID("service/outline"), time.Hour)

	var log lines
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() {
		ended <- (&process{Settings: &settings.Settings{
			Common:  settings.Common{State: filepath.Join(dir, "state"), Activation: hostdir.Layout(filepath.Join(dir, "activation"))},
			Section: &distribution.Settings{},
		}, kind: "config", log: slog.New(slog.NewTextHandler(&log, nil))}).serve(ctx)
	}()
	log.wait(t, "certificate is of spiffe://demo.flor/service/outline, want spiffe://demo.flor/service/drhorrible/florete-provider-config")

	roots, err := trust.NewRoots(p.TrustDomain, p.Trust.Roots)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		leaf := by.Deliver(need, self.ID, time.Hour).Leaf
		log.wait(t, "msg=serving")
		conn, err := tls.Dial("tcp", self.Listen[0], &tls.Config{InsecureSkipVerify: true})
		if err != nil {
			t.Fatal(err)
		}
		if got := conn.ConnectionState().PeerCertificates[0]; !got.Equal(leaf) {
			t.Errorf("presents the SVID of %s, want that of %s", got.NotBefore, leaf.NotBefore)
		}
		conn.Close()
	}
	c := &hostapi.Client{Node: kit.ID("node/ursula"), Provider: document.Provider{ID: self.ID, Addresses: self.Listen}, Roots: roots}
	c.SVID = by.Issue(c.Node, time.Hour)
	_, err = c.Artifact(t.Context())
	providertest.WantError(t, err, hostapi.CodeNotGranted)
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// lines collects log lines.
type lines struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

// wait waits until something is logged.
func (l *lines) wait(t *testing.T, want string) {
	t.Helper()
	kit.Succeeds(t, "a line of the log", func() error {
		l.mu.Lock()
		defer l.mu.Unlock()
		if said := l.text.String(); !strings.Contains(said, want) {
			return fmt.Errorf("never logged %q, but:\n%s", want, said)
		}
		return nil
	})
}
