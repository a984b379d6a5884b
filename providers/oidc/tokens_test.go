package oidc

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/oauth2"

	"github.com/florete/florete/providers/server"
	"github.com/florete/florete/tests/kit"
)

// refresh presents a refresh token.
func (s *service) refresh(token string) (*oauth2.Token, error) {
	return s.TokenSource(s.ctx(), &oauth2.Token{RefreshToken: token}).Token()
}

// TestReplayedCode checks that presenting a code twice ends the tokens that it gave.
func TestReplayedCode(t *testing.T) {
	f := newFixture(t)
	s := f.service(f.register(1))
	code := s.signIn("state", "verifier")
	token, err := s.Exchange(s.ctx(), code, oauth2.VerifierOption("verifier"))
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.Exchange(s.ctx(), strings.Repeat("x", 25), oauth2.VerifierOption("verifier"))
	refused(t, "no code", err, "invalid_grant")
	first := token
	if token, err = s.refresh(token.RefreshToken); err != nil {
		t.Fatal(err)
	}
	about := func(token *oauth2.Token) error {
		_, err := s.provider.UserInfo(s.ctx(), oauth2.StaticTokenSource(token))
		return err
	}
	if err := about(first); err != nil {
		t.Errorf("access token: %v", err)
	}
	_, err = s.Exchange(s.ctx(), code, oauth2.VerifierOption("verifier"))
	refused(t, "code a second time", err, "invalid_grant")
	if _, err := s.refresh(token.RefreshToken); err == nil {
		t.Error("tokens of a code that was presented twice go on")
	}
	for _, token := range []*oauth2.Token{first, token} {
		if err := about(token); err == nil || !strings.Contains(err.Error(), "401") {
			t.Errorf("access token of a code that was presented twice: %v", err)
		}
	}
	// Times in tokens are whole seconds.
	kit.NextSecond()
	f.rows(`granted sign-in`, `granted tokens`, `denied tokens invalid_grant`, `granted refreshed tokens`,
		`denied tokens replayed`, `denied tokens invalid_request`)
	again, err := s.Exchange(s.ctx(), s.signIn("state", "verifier"), oauth2.VerifierOption("verifier"))
	if err != nil {
		t.Fatal(err)
	}
	if err := about(again); err != nil {
		t.Errorf("another sign-in after that: %v", err)
	}
}

// TestCodeAtOnce checks that if several clients present a code at the same time, at most one gets
// tokens, and these are soon ended.
func TestCodeAtOnce(t *testing.T) {
	f := newFixture(t)
	s := f.service(f.register(1))
	for range 3 {
		code := s.signIn("state", "verifier")
		var mu sync.Mutex
		var got []*oauth2.Token
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				if token, err := s.Exchange(s.ctx(), code, oauth2.VerifierOption("verifier")); err == nil {
					mu.Lock()
					got = append(got, token)
					mu.Unlock()
				}
			})
		}
		wg.Wait()
		if len(got) > 1 {
			t.Errorf("%d exchanges succeeded, want one at most", len(got))
		}
		for _, token := range got {
			if _, err := s.refresh(token.RefreshToken); err == nil {
				t.Error("tokens of a code that was presented four times go on")
			}
		}
	}
}

// TestReplayedRefresh checks that using a refresh token that was replaced ends its successor too,
// unless the answer may have been lost.
func TestReplayedRefresh(t *testing.T) {
	f := newFixture(t)
	s := f.service(f.register(1))
	first, err := s.Exchange(s.ctx(), s.signIn("state", "verifier"), oauth2.VerifierOption("verifier"))
	if err != nil {
		t.Fatal(err)
	}
	id, secret := presented(first.RefreshToken)
	if id == "" || secret == "" {
		t.Fatalf("%q cannot be read", first.RefreshToken)
	}
	age := func() { f.age(first) }
	age()
	second, err := s.refresh(first.RefreshToken)
	if err != nil || second.RefreshToken == first.RefreshToken {
		t.Fatalf("not rotated: %v", err)
	}
	if lost, err := s.refresh(first.RefreshToken); err != nil || lost.RefreshToken != second.RefreshToken {
		t.Errorf("an answer that got lost: %v", err)
	}
	age()
	if _, err := s.refresh(first.RefreshToken); err == nil {
		t.Error("a token in whose place another was given is taken")
	}
	if _, err := s.refresh(second.RefreshToken); err == nil {
		t.Error("the newest token of a family outlives a replay")
	}
	f.rows(`granted sign-in`, `granted tokens`, `granted refreshed tokens`, `granted refreshed tokens`,
		`denied tokens replayed`, `denied tokens invalid_request`)
	s.signIn("state", "verifier")
}

func TestPresented(t *testing.T) {
	for raw, want := range map[string][2]string{
		"\x0a\x02id\x12\x06secret":  {"id", "secret"},
		"\x0a\x00\x12\x00":          {"", ""},
		"\x12\x02id\x0a\x06secret":  {"raw", ""},
		"\x0a\x09id\x12\x06secret":  {"raw", ""},
		"\x0a\xff\x01\x12\x06secre": {"raw", ""},
		"\x0a":                      {"raw", ""},
		"":                          {"raw", ""},
	} {
		text := base64.RawURLEncoding.EncodeToString([]byte(raw))
		id, secret := presented(text)
		if id == text {
			id = "raw"
		}
		if id != want[0] || secret != want[1] {
			t.Errorf("%q: got %q and %q, want %q", raw, id, secret, want)
		}
	}
}

// audit returns the audit rows of the issuer.
func (f *fixture) audit() (rows []server.Row) {
	f.t.Helper()
	entries, _, err := f.db.List(f.t.Context(), server.AuditPrefix)
	if err != nil {
		f.t.Fatal(err)
	}
	for _, e := range entries {
		var r server.Row
		if err := json.Unmarshal(e.Value, &r); err != nil {
			f.t.Fatal(err)
		}
		rows = append(rows, r)
	}
	return rows
}

// rows wants decisions: outcome, what and code.
func (f *fixture) rows(want ...string) {
	f.t.Helper()
	var got []string
	for _, r := range f.audit() {
		got = append(got, strings.TrimSpace(string(r.Outcome)+" "+r.Detail["what"]+" "+r.Code))
		if r.Kind != Name || r.Time.IsZero() || !strings.HasPrefix(r.From, "127.") {
			f.t.Errorf("a row that lacks something: %+v", r)
		}
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		f.t.Errorf("audit:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestAudit checks that sign-ins, refused passwords and tokens have audit rows with address,
// account and client, but without secrets.
func TestAudit(t *testing.T) {
	f := newFixture(t)
	delivered := f.register(1)
	s := f.service(delivered)
	s.submit(s.begin("state", "verifier"), email, "wr0ng")
	s.submit(s.begin("state", "verifier"), "\x1b[2J@demo.flor", "wr0ng")
	code := s.signIn("state", "verifier")
	token, err := s.Exchange(s.ctx(), code, oauth2.VerifierOption("verifier"))
	if err != nil {
		t.Fatal(err)
	}
	s.ClientSecret = "guess"
	_, err = s.Exchange(s.ctx(), "code", oauth2.VerifierOption("verifier"))
	refused(t, "guessed secret", err, "invalid_client")
	f.rows("denied sign-in wrong-password", "denied sign-in wrong-password", "granted sign-in", "granted tokens", "denied tokens invalid_client")
	for i, row := range f.audit() {
		if i == 1 {
			if row.Detail["account"] != "·[2j@demo.flor" {
				t.Errorf("a stranger wrote what steers a terminal: %+v", row)
			}
			continue
		}
		if i < 4 && row.Detail["account"] != email || i > 1 && i < 4 && row.Detail["client"] != "outline.demo.flor.rete" {
			t.Errorf("%+v", row)
		}
		for what, secret := range map[string]string{"password": password, "wrong password": "wr0ng", "code": code, "token": token.AccessToken,
			"refresh token": token.RefreshToken, "client secret": delivered["clientSecret"]} {
			if b := must(json.Marshal(row)); strings.Contains(string(b), secret) {
				t.Errorf("the %s is in %s", what, b)
			}
		}
	}
}

// TestManyRefusals checks that many refusals of strangers cause few rows and log lines, and that
// refusals for a user's account are counted separately.
func TestManyRefusals(t *testing.T) {
	f := newFixture(t)
	s := f.service(f.register(1))
	const whole = 100
	for range whole + 50 {
		if p := s.read(s.http.Get(issuerURL + "/auth/local?client_id=none")); p.status != http.StatusNotFound {
			t.Fatalf("status %d", p.status)
		}
		r, err := s.http.PostForm(issuerURL+"/token", url.Values{"grant_type": {"refresh_token"}, "client_id": {"none"}})
		if err != nil {
			t.Fatal(err)
		}
		r.Body.Close()
	}
	page := s.begin("state", "verifier")
	for range 20 {
		s.submit(page, email, "wrong")
	}
	if n := len(f.audit()); n != whole {
		t.Errorf("%d rows, want %d", n, whole)
	}
	f.p.cfg.Audit.Sum(t.Context(), time.Now())
	rows := f.audit()
	sum := rows[len(rows)-1]
	wrong, _ := strconv.Atoi(sum.Detail["wrong-password "+email])
	slowed, _ := strconv.Atoi(sum.Detail["slowed "+email])
	if len(rows) != whole+1 || sum.Detail["invalid_client"] != "50" || wrong < freeGuesses || wrong+slowed != 20 {
		t.Errorf("%d rows, the sum is %+v", len(rows), sum)
	}
	f.stop()
	if n := strings.Count(f.logs.String(), "\n"); n > 2*whole {
		t.Errorf("%d lines in the log, want few", n)
	}
}
