package browser

import (
	"crypto/rand"
	"fmt"
	"html"
	"net"
	"net/http"
	"sync"
	"testing"

	"github.com/florete/florete/tests/local"
)

// outline is a web program that lets people sign in and recognises them by a cookie.
type outline struct {
	local.SignIn

	mu       sync.Mutex
	sessions map[string]string // name of the person, by cookie
}

const cookie = "__Host-session"

// serve runs the services of the host forge, which people visit with a browser.
func (c *cluster) serve(t *testing.T) {
	t.Helper()
	app := &outline{sessions: map[string]string{}, SignIn: local.SignIn{Host: c.forge, Need: "oidc-outline", Redirect: page + "auth/oidc.callback",
		Client: func() (*http.Client, error) { return c.stranger(""), nil }}}
	for address, h := range map[string]http.Handler{
		"127.0.0.1:4654": app,
		"127.0.0.1:4656": http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, `<p id="photos">photos at home</p>`)
		}),
		"127.0.0.1:4657": http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			fmt.Fprintf(w, `<p id="who">%s</p>`, html.EscapeString(r.Header.Get("X-Forwarded-Email")))
		}),
		"127.0.0.1:4655": http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, "<title>wiki</title><p>of the cluster alone")
		}),
	} {
		l, err := net.Listen("tcp", address)
		check(t, err)
		s := &http.Server{Handler: h}
		go func() { _ = s.Serve(l) }()
		t.Cleanup(func() { s.Close() })
	}
}

func (o *outline) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var err error
	switch r.URL.Path {
	case "/auth/oidc.callback":
		err = o.callback(w, r)
	default:
		err = o.page(w, r)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
	}
}

// page shows a page to a person who has signed in. It redirects any other person to the sign-in.
func (o *outline) page(w http.ResponseWriter, r *http.Request) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if c, err := r.Cookie(cookie); err == nil && o.sessions[c.Value] != "" {
		fmt.Fprintf(w, "<title>outline</title><h1>Outline</h1><p>Signed in as <b id=who>%s</b>.", html.EscapeString(o.sessions[c.Value]))
		return nil
	}
	return o.Begin(w, r)
}

func (o *outline) callback(w http.ResponseWriter, r *http.Request) error {
	var claims struct{ Name string }
	if err := o.End(r, &claims); err != nil {
		return err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	session := rand.Text()
	o.sessions[session] = claims.Name
	http.SetCookie(w, &http.Cookie{Name: cookie, Value: session, Path: "/", Secure: true, HttpOnly: true, SameSite: http.SameSiteLaxMode})
	http.Redirect(w, r, "/", http.StatusSeeOther)
	return nil
}
