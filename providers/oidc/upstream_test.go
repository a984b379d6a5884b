package oidc

import (
	"io/fs"
	"log/slog"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	dex "github.com/dexidp/dex/server"
	"github.com/dexidp/dex/server/signer"
	dexstorage "github.com/dexidp/dex/storage"
	"github.com/dexidp/dex/storage/memory"
	"golang.org/x/oauth2"
)

// newUpstream runs the issuer of another organization: an unmodified Dex with one client, florete.
// It serves while up is true.
func newUpstream(t *testing.T) (issuer string, up *atomic.Bool) {
	t.Helper()
	var handler http.Handler
	up = new(atomic.Bool)
	up.Store(true)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !up.Load() {
			http.Error(w, "away", http.StatusBadGateway)
			return
		}
		handler.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	log := slog.New(slog.DiscardHandler)
	db := memory.New(log)
	must(0, db.CreateClient(t.Context(), dexstorage.Client{ID: "florete", Secret: "upstream secret", Name: "florete", RedirectURIs: []string{issuerURL + "/callback"}}))
	must(0, db.CreatePassword(t.Context(), dexstorage.Password{
		Email: "dora@elsewhere.example", Username: "dora", UserID: "d-1", Hash: []byte(hash()), Groups: []string{"guests"},
	}))
	keys := must((&signer.LocalConfig{KeysRotationPeriod: "1h"}).Open(t.Context(), db, time.Hour, time.Now, log))
	keys.Start(t.Context())
	handler = must(dex.NewServer(t.Context(), dex.Config{
		Issuer: server.URL, Storage: dexstorage.WithStaticConnectors(db, []dexstorage.Connector{{ID: "local", Name: "local", Type: "local"}}),
		SkipApprovalScreen: true, Logger: log, Signer: keys, Web: dex.WebConfig{WebFS: must(fs.Sub(web, "web")), Issuer: "elsewhere"},
		RefreshTokenPolicy: must(dex.NewRefreshTokenPolicy(log, false, "1h", "1h", "0s")),
	}))
	return server.URL, up
}

// elsewhere signs dora in at upstream, and returns with the code for the service.
func (s *service) elsewhere(more ...oauth2.AuthCodeOption) page {
	s.t.Helper()
	p := s.begin("state", "verifier", append(more, at("partner"))...)
	if p.location == nil {
		return p
	}
	there := *s
	there.http = &http.Client{Jar: must(cookiejar.New(nil)), CheckRedirect: func(r *http.Request, _ []*http.Request) error {
		if strings.HasPrefix(r.URL.String(), issuerURL) {
			return http.ErrUseLastResponse
		}
		return nil
	}}
	form := there.read(there.http.Get(p.location.String()))
	back := there.submit(form, "dora@elsewhere.example", password)
	if back.location == nil {
		s.t.Fatalf("upstream: status %d: %s", back.status, back.text)
	}
	return s.read(s.http.Get(back.location.String()))
}

// TestUpstream checks that people can sign in at an external issuer, which may be unreachable at
// first.
func TestUpstream(t *testing.T) {
	t.Parallel()
	issuer, up := newUpstream(t)
	up.Store(false)
	f := prepared(t)
	f.more = `,"upstream":{"partner":{"title":"Partner","issuer":"` + issuer + `","clientId":"florete","scopes":["profile","email","groups","offline_access"],"groups":"groups","roots":""}}`
	groups := []string{"guests"}
	f.want = func(r *Request) { r.AllowedGroups = groups }
	f.grant(callback)
	if err := os.WriteFile(filepath.Join(f.dir, "connector-partner"), []byte("upstream secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	f.start()
	s := f.service(f.register(1))
	s.Scopes = append(s.Scopes, "groups")
	if p := s.elsewhere(); p.status != http.StatusServiceUnavailable || p.title != "Not now · demo" {
		t.Errorf("while the issuer is away: status %d: %s", p.status, p.text)
	}
	up.Store(true)
	p := s.elsewhere()
	if p.location == nil || !strings.HasPrefix(p.location.String(), callback+"?") {
		t.Fatalf("status %d, sent to %v: %s", p.status, p.location, p.text)
	}
	token, err := s.Exchange(s.ctx(), p.location.Query().Get("code"), oauth2.VerifierOption("verifier"))
	if err != nil {
		t.Fatal(err)
	}
	if c := s.claims(token); c.Email != "dora@elsewhere.example" || c.Name != "dora" || !slices.Equal(c.Groups, groups) {
		t.Errorf("claims are %+v", c)
	}

	// Another browser cannot finish this browser's sign-in.
	begun := s.begin("state", "verifier", at("partner"))
	other := *s
	other.http = f.client()
	if p := other.read(other.http.Get(issuerURL + "/callback?code=x&state=" + begun.location.Query().Get("state"))); p.status != http.StatusBadRequest {
		t.Errorf("another browser: status %d: %s", p.status, p.text)
	}

	groups = []string{"writers"}
	f.grant(callback)
	if p := s.elsewhere(); p.status != http.StatusForbidden || !strings.Contains(p.text, "none of the groups") {
		t.Errorf("outside of the groups: status %d, sent to %v: %s", p.status, p.location, p.text)
	}
	f.stop()
	if strings.Contains(f.logs.String(), "upstream secret") {
		t.Error("the logs have the secret")
	}
}
