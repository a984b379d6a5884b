package oidc

import (
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/oauth2"
)

// asked sends a request to /person and returns the status and the answer.
func (f *fixture) asked(id, secret, subject string, since time.Time, end bool) (status int, active bool) {
	f.t.Helper()
	form := url.Values{"sub": {subject}, "since": {strconv.FormatInt(since.Unix(), 10)}}
	if end {
		form.Set("end", "true")
	}
	r, err := http.NewRequest(http.MethodPost, issuerURL+"/person", strings.NewReader(form.Encode()))
	if err != nil {
		f.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.SetBasicAuth(id, secret)
	resp, err := f.client().Do(r)
	if err != nil {
		f.t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		f.t.Fatal(err)
	}
	var answer struct{ Active bool }
	_ = json.Unmarshal(b, &answer) // refusals are text
	return resp.StatusCode, answer.Active
}

// TestPerson checks that only a client learns about a person, for its own sessions, and that it can
// end them.
func TestPerson(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	delivered := f.register(1)
	id, secret := delivered["clientId"], delivered["clientSecret"]
	s := f.service(delivered)
	tokens, err := s.Exchange(s.ctx(), s.signIn("x", "verifier"), oauth2.VerifierOption("verifier"))
	if err != nil {
		t.Fatal(err)
	}
	subject, now := s.idToken(tokens).Subject, time.Now()
	for _, wrong := range []string{"", "none", secret[1:], secret + "x"} {
		if status, active := f.asked(id, wrong, subject, now, true); status != http.StatusUnauthorized || active {
			t.Errorf("secret %q: %d", wrong, status)
		}
	}
	if status, _ := f.asked("none.demo.flor.rete", secret, subject, now, false); status != http.StatusUnauthorized {
		t.Errorf("an unknown client: %d", status)
	}
	if status, active := f.asked(id, secret, subject, now, false); status != http.StatusOK || !active {
		t.Fatalf("a person who signed in: %d, %v", status, active)
	}
	for _, other := range []string{"nobody", "CgN1LTISBWxvY2Fs"} { // the second is user u-2 of the users file
		if status, active := f.asked(id, secret, other, now, false); status != http.StatusOK || active {
			t.Errorf("%q: %d, %v", other, status, active)
		}
	}
	f.want = func(r *Request) { r.AllowedGroups = []string{"admins"} }
	f.grant(callback)
	if _, active := f.asked(id, secret, subject, now, false); active {
		t.Error("a person outside the groups is active")
	}
	f.want = nil
	f.grant(callback)
	if _, active := f.asked(id, secret, subject, now, true); active {
		t.Error("a session that was ended is active")
	}
	if _, active := f.asked(id, secret, subject, now.Add(time.Minute), false); !active {
		t.Error("a session that began later is not active")
	}
	f.restart()
	if _, active := f.asked(id, secret, subject, now, false); active {
		t.Error("a restart revives the session")
	}
}
