package oidc

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"golang.org/x/oauth2"

	"github.com/florete/florete/tests/chromium"
)

// app returns the pages of outline, which send people who have not signed in to the issuer.
func (s *service) app() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, s.AuthCodeURL("state", oauth2.S256ChallengeOption("verifier")), http.StatusSeeOther)
	})
	mux.HandleFunc("GET /auth/oidc.callback", func(w http.ResponseWriter, r *http.Request) {
		token, err := s.Exchange(s.ctx(), r.FormValue("code"), oauth2.VerifierOption("verifier"))
		if err == nil && r.FormValue("state") != "state" {
			err = errors.New("another state")
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusForbidden)
			return
		}
		c := s.claims(token)
		fmt.Fprintf(w, "<title>outline</title><p id=who>%s of %s", c.Email, strings.Join(c.Groups, " and "))
	})
	return mux
}

// TestBrowser checks that a person of the directory can sign in with a real browser.
func TestBrowser(t *testing.T) {
	t.Parallel()
	f, _ := newLDAP(t, func(r *Request) { r.AllowedGroups = []string{"writers"} })
	s := f.service(f.register(1))
	s.Scopes = append(s.Scopes, "groups")
	app := httptest.NewServer(s.app())
	t.Cleanup(app.Close)
	b := chromium.Start(t, chromium.Config{Names: map[string]string{"auth.demo.flor.rete": f.listen, "outline.demo.flor.rete": app.Listener.Addr().(*net.TCPAddr).String()}})

	visit := func() {
		b.Visit("http://outline.demo.flor.rete/")
		b.Wait(`document.querySelectorAll("a.button").length == 2`)
	}
	signIn := func(name, secret string) {
		b.Eval(`[...document.querySelectorAll("a.button")].find(a => a.innerText.includes("Staff directory")).click()`)
		b.Wait(`document.activeElement.id == "login"`)
		b.Write("#login", name)
		b.Write("#password", secret)
		b.Eval(`document.querySelector("button[type=submit]").click()`)
	}
	visit()
	b.Picture("choice")
	signIn("alice", "guess")
	b.Wait(`document.querySelector("#refused")?.innerText == "That username and password do not match."`)
	b.Picture("refused")
	visit()
	signIn("bob", "password of bob")
	b.Wait(`document.querySelector("h1")?.innerText == "Not for you"`)
	b.Picture("outside")
	visit()
	signIn("alice", "password of alice")
	b.Wait(`document.querySelector("#who")?.innerText.startsWith("alice@demo.flor of ")`)
	b.Picture("signed-in")
}
