package main

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/florete/florete/providers/ca"
	"github.com/florete/florete/providers/cert"
	"github.com/florete/florete/providers/server"
	"github.com/florete/florete/providers/settings"
	"github.com/florete/florete/tests/kit"
)

// TestEnds checks that the log says in time which certificates must be signed again.
func TestEnds(t *testing.T) {
	dir := t.TempDir()
	must := func(err error) {
		if err != nil {
			t.Helper()
			t.Fatal(err)
		}
	}
	must(root(dir))
	policy, err := policyOf(dir, "127.0.0.1:4600", kit.Authorized(kit.NewHostKey().PublicKey()), []string{"cert"})
	must(err)
	kit.Write(filepath.Join(dir, "policy"), kit.Document(1000, policy))
	must(os.MkdirAll(filepath.Join(dir, "state", "cert"), 0o700))
	var log bytes.Buffer
	p := &process{
		kind:     cert.Name,
		Settings: &settings.Settings{Common: settings.Common{State: filepath.Join(dir, "state")}, Section: &cert.Settings{IssuingCertificate: filepath.Join(dir, "issuing.crt")}},
		log:      slog.New(slog.NewTextHandler(&log, nil)),
	}
	p.policies, err = server.OpenPolicies(filepath.Join(dir, "policy"), filepath.Join(dir, "revocations.json"), cert.Name, p.log)
	must(err)
	must(ca.Request(kit.Domain, cert.IssuingKey(p.dir()), p.csr()))
	must(sign(dir))
	const day = 24 * time.Hour
	for _, c := range []struct {
		in   time.Duration
		want []string
	}{
		{0, nil},
		{ca.IssuingLifetime/2 - day, nil},
		{ca.IssuingLifetime/2 + day, []string{"the issuing certificate is to be signed anew", "run", "ssh drhorrible cat "}},
		{ca.RootLifetime - 29*day, []string{"the issuing certificate is to be signed anew", "a root certificate ends soon", "florctl ca init"}},
	} {
		log.Reset()
		must(os.RemoveAll(p.csr()))
		p.logEnds(time.Now().Add(c.in))
		if c.want == nil && log.Len() > 0 {
			t.Errorf("in %s: %s", c.in, &log)
		}
		if _, err := os.Stat(p.csr()); (err == nil) != (c.want != nil) {
			t.Errorf("in %s: the request for the next certificate: %v", c.in, err)
		}
		for _, want := range c.want {
			if !strings.Contains(log.String(), want) {
				t.Errorf("in %s: %s, want %q", c.in, &log, want)
			}
		}
	}
}
