package ingress

import (
	"context"
	"errors"
	"fmt"
	"html"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"golang.org/x/oauth2"

	"github.com/florete/florete/agent/forward/announce"
)

// These are the paths of a public name that the gate itself answers.
const (
	CallbackPath = "/.florete/callback"
	SignOutPath  = "/.florete/sign-out"
)

// These are the paths that only a proxy uses.
const (
	CheckPath = "/check"
	StartPath = "/start"
	EnterPath = "/enter"
)

// TargetHeader is the header in which a proxy passes the request target that the browser sent.
const TargetHeader = "X-Florete-Target"

// A proxy passes the method and the header Upgrade of a browser in these headers, because its own
// requests have method GET.
const (
	MethodHeader  = "X-Florete-Method"
	UpgradeHeader = "X-Florete-Upgrade"
)

// gateHeaders maps the request headers that tell the service who signed in to the headers of an
// answer to /check. A proxy must remove the request headers from all requests of strangers.
var gateHeaders = []struct{ Request, Answer string }{
	{announce.UserHeader, "X-Florete-User"},
	{announce.EmailHeader, "X-Florete-Email"},
	{announce.NameHeader, "X-Florete-Preferred-Username"},
	{announce.GroupsHeader, "X-Florete-Groups"},
}

// tellsPerson reports whether a request header tells the service who signed in.
func tellsPerson(name string) bool {
	for _, h := range gateHeaders {
		if h.Request == name {
			return true
		}
	}
	return false
}

const (
	loginTime   = 10 * time.Minute // from the redirect to the issuer until the browser returns
	maxTarget   = 2000             // bytes of a path to which a sign-in returns
	maxAsking   = 16               // requests to issuers at the same time
	askPatience = 10 * time.Second
)

// GateSite is a public name whose visitors must sign in.
type GateSite struct {
	Name    string // public name
	Service string // SPIFFE ID of the service

	// Client is nil while its credentials are not delivered. Nobody can sign in then.
	Client *GateClient

	Session time.Duration // maximum age of a session

	// Own reports whether the issuer belongs to the cluster, so that it answers whether a person
	// may still sign in. The sessions of other issuers end with their ID token.
	Own bool

	// Groups maps the group names that the service knows to the groups of the issuer whose people
	// have them. It is nil if the service sees the groups of the issuer.
	Groups map[string][]string
}

// named returns the groups of a person under the names that the service knows.
func (s GateSite) named(groups []string) []string {
	if s.Groups == nil {
		return groups
	}
	var named []string
	for name, of := range s.Groups {
		if slices.ContainsFunc(of, func(g string) bool { return slices.Contains(groups, g) }) {
			named = append(named, name)
		}
	}
	slices.Sort(named)
	return named
}

// GateClient contains the credentials of a client of an OpenID Connect issuer.
type GateClient struct{ Issuer, ID, Secret string }

// A Gate requires a sign-in in front of services that have none. A reverse proxy calls it before
// each request to a public name. The gate answers whether the browser has a session, and signs
// people in at an OpenID Connect issuer (OpenID Connect Core 1.0, code flow with PKCE).
//
// The gate serves HTTP to the proxy, at these paths. The host of a request is the public name, and
// the header X-Florete-Target is the request target that the browser sent:
//
//	/check             204 with the headers of gateHeaders, or 401
//	/start             begins a sign-in
//	/enter             /check, or /start if there is no session
//	/.florete/callback end of a sign-in, to which the issuer redirects the browser
//	/.florete/sign-out ends the sessions of the person at this service
//
// A session is in a cookie, encrypted and authenticated with a key that is derived from the client
// secret. All hosts with the same client therefore accept it. If the issuer belongs to the cluster,
// the gate asks it at least once a minute whether the person may still sign in.
//
// A Gate must be created with NewGate.
type Gate struct {
	log     *slog.Logger
	sites   atomic.Pointer[map[string]GateSite]
	issuers *issuers
	persons *lru.Cache[visit, *person]
	ended   *lru.Cache[account, time.Time] // accounts that signed out here
	asking  chan struct{}
	now     func() time.Time
}

// NewGate returns a Gate without sites.
func NewGate(log *slog.Logger) *Gate {
	persons, err := lru.New[visit, *person](10_000)
	if err != nil {
		panic(err) // only a size below one is an error
	}
	ended, err := lru.New[account, time.Time](10_000)
	if err != nil {
		panic(err)
	}
	g := &Gate{log: log, issuers: newIssuers(), persons: persons, ended: ended, asking: make(chan struct{}, maxAsking), now: time.Now}
	g.Set(nil)
	return g
}

// Set replaces the sites of the gate.
func (g *Gate) Set(sites []GateSite) {
	all := map[string]GateSite{}
	for _, s := range sites {
		all[s.Name] = s
	}
	g.sites.Store(&all)
}

// ServeHTTP answers a request of the proxy.
func (g *Gate) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Cache-Control", "no-store")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Content-Security-Policy", "default-src 'none'; base-uri 'none'; frame-ancestors 'none'")
	s, ok := (*g.sites.Load())[r.Host]
	if !ok {
		http.Error(w, "This server has no site of that name.", http.StatusNotFound)
		return
	}
	switch r.URL.Path {
	case CheckPath:
		if g.admit(w, r, s) {
			w.WriteHeader(http.StatusNoContent)
		} else {
			// nginx then calls /start, and takes any other status for a failure.
			w.WriteHeader(http.StatusUnauthorized)
		}
	case StartPath:
		g.start(w, r, s)
	case EnterPath:
		if g.admit(w, r, s) {
			w.WriteHeader(http.StatusNoContent)
		} else {
			g.start(w, r, s)
		}
	case CallbackPath:
		g.callback(w, r, s)
	case SignOutPath:
		g.signOut(w, r, s)
	default:
		gatePage(w, http.StatusNotFound, "Not found", "There is no such page.")
	}
}

// admit reports whether the request has a session that has not ended. It writes the headers that
// describe the person.
func (g *Gate) admit(w http.ResponseWriter, r *http.Request, s GateSite) bool {
	in, ok := g.session(r, s)
	if !ok || !g.stays(r.Context(), s, &in) {
		return false
	}
	for i, value := range []string{in.Subject, in.Email, in.Name, strings.Join(s.named(in.Groups), ",")} {
		if plainValue(value) {
			w.Header().Set(gateHeaders[i].Answer, value)
		}
	}
	return true
}

// start redirects a browser to the issuer. The state of the sign-in is in the URL, encrypted for
// this browser, so unfinished sign-ins need no memory here.
func (g *Gate) start(w http.ResponseWriter, r *http.Request, s GateSite) {
	if s.Client == nil {
		gatePage(w, http.StatusServiceUnavailable, "Not now", "The sign-in of this site is not ready yet. Try again in a minute.")
		return
	}
	if !navigates(r) {
		// A script or a program cannot sign in, and its request may have changed something.
		gatePage(w, http.StatusUnauthorized, "Sign in", "Open this site in a browser and sign in.")
		return
	}
	issuer, err := g.issuer(r.Context(), s)
	if err != nil {
		g.log.Warn("the issuer does not answer", "name", s.Name, "issuer", s.Client.Issuer, "error", err)
		gatePage(w, http.StatusServiceUnavailable, "Not now", "The server at which people sign in does not answer. Try again in a minute.")
		return
	}
	browser := cookieOf(r, browserCookie)
	if len(browser) != len(randomName()) {
		browser = randomName()
		setCookie(w, browserCookie, browser, 0)
	}
	b := begun{Browser: browser, Verifier: oauth2.GenerateVerifier(), Nonce: randomName(), Target: returnTo(r.Header.Get(TargetHeader)), Until: g.now().Add(loginTime).Unix()}
	http.Redirect(w, r, issuer.url(s, s.seal(purposeLogin, b), b), http.StatusSeeOther)
}

// callback ends a sign-in: it exchanges the code for an ID token, and begins the session.
func (g *Gate) callback(w http.ResponseWriter, r *http.Request, s GateSite) {
	if s.Client == nil {
		gatePage(w, http.StatusServiceUnavailable, "Not now", "The sign-in of this site is not ready yet. Try again in a minute.")
		return
	}
	if r.Header.Get(MethodHeader) != http.MethodGet {
		gatePage(w, http.StatusMethodNotAllowed, "Not allowed", "Open this site again.")
		return
	}
	q := r.URL.Query()
	var b begun
	browser := cookieOf(r, browserCookie)
	if !s.open(purposeLogin, q.Get("state"), &b) || g.now().Unix() >= b.Until || browser == "" || !equalSecrets(b.Browser, browser) {
		gatePage(w, http.StatusBadRequest, "Sign in again", "This sign-in took too long, or began in another browser.")
		return
	}
	if code := q.Get("error"); code != "" {
		g.log.Info("the issuer refuses a sign-in", "name", s.Name, "error", fmt.Sprintf("%.100q", code))
		gatePage(w, http.StatusForbidden, "Not signed in", "The server at which people sign in refused.")
		return
	}
	in, err := g.exchange(r.Context(), s, q.Get("code"), b)
	if err != nil {
		g.log.Warn("a sign-in failed", "name", s.Name, "error", err)
		gatePage(w, http.StatusBadGateway, "Not signed in", "The server at which people sign in did not confirm this. Sign in again.")
		return
	}
	setCookie(w, sessionCookie, s.seal(purposeSession, in), time.Unix(in.Until, 0).Sub(g.now()))
	w.Header().Set("Location", b.Target)
	w.WriteHeader(http.StatusSeeOther)
}

// signOut ends all sessions of the person at this service. Another site cannot sign a person out.
func (g *Gate) signOut(w http.ResponseWriter, r *http.Request, s GateSite) {
	if from := r.Header.Get("Sec-Fetch-Site"); from == "cross-site" || from == "same-site" {
		gatePageTo(w, http.StatusForbidden, "Sign out", "Another site led you here.", SignOutPath, "Sign out")
		return
	}
	if in, ok := g.session(r, s); ok {
		g.ended.Add(account{s.Client.ID, in.Subject}, g.now())
		if err := g.end(r.Context(), s, in); err != nil {
			g.log.Warn("a sign-out did not reach the issuer", "name", s.Name, "error", err)
			gatePage(w, http.StatusServiceUnavailable, "Not signed out", "The server at which people sign in does not answer, so you may still be signed in elsewhere. Try again in a minute.")
			return
		}
	}
	setCookie(w, sessionCookie, "", -1)
	gatePageTo(w, http.StatusOK, "Signed out", "You are signed out.", "/", "Sign in again")
}

// navigates reports whether a browser opens a page with the request.
func navigates(r *http.Request) bool {
	method, mode := r.Header.Get(MethodHeader), r.Header.Get("Sec-Fetch-Mode")
	return (method == http.MethodGet || method == http.MethodHead) && (mode == "" || mode == "navigate") && r.Header.Get(UpgradeHeader) == ""
}

// returnTo returns the path to which a sign-in returns. A target that a browser could take for the
// address of another site, or that leads to the gate itself, becomes "/".
func returnTo(target string) string {
	odd := func(c rune) bool { return c <= ' ' || c > '~' || c == '\\' }
	path, _, _ := strings.Cut(target, "?")
	if len(target) > maxTarget || !strings.HasPrefix(target, "/") || strings.HasPrefix(target, "//") || strings.ContainsFunc(target, odd) ||
		slices.Contains([]string{CallbackPath, SignOutPath}, path) {
		return "/"
	}
	return target
}

// plainValue reports whether a value can be a header of a request to the service.
func plainValue(value string) bool {
	return value != "" && !strings.ContainsFunc(value, func(c rune) bool { return c < ' ' || c > '~' })
}

// gatePage writes a page for people.
func gatePage(w http.ResponseWriter, status int, title, text string) {
	gatePageTo(w, status, title, text, "/", "Go to the site")
}

func gatePageTo(w http.ResponseWriter, status int, title, text, path, link string) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	fmt.Fprintf(w, "<!DOCTYPE html>\n<title>%s</title>\n<h1>%[1]s</h1>\n<p>%s</p>\n<p><a href=\"%s\">%s</a></p>\n",
		html.EscapeString(title), html.EscapeString(text), path, html.EscapeString(link))
}

var errBusy = errors.New("too many requests to issuers at once")

// acquire waits until another request to an issuer may begin.
func (g *Gate) acquire(ctx context.Context) (done func(), err error) {
	select {
	case g.asking <- struct{}{}:
		return func() { <-g.asking }, nil
	case <-ctx.Done():
		return nil, errors.Join(errBusy, ctx.Err())
	}
}
