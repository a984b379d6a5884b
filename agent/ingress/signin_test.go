package ingress

import (
	"io"
	"log/slog"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/florete/florete/tests/kit"
	"github.com/florete/florete/tests/kit/gatetest"
)

// fixture is a gate for two services, and the issuer at which people sign in.
type fixture struct {
	*Gate
	t      *testing.T
	issuer *gatetest.Issuer
	sites  map[string]GateSite
}

func newFixture(t *testing.T, change ...func(*GateSite)) *fixture {
	f := &fixture{t: t, sites: map[string]GateSite{}}
	names := map[string]string{"wiki.example": "wiki", "docs.example": "wiki", "other.example": "other"}
	clients := map[string][]string{}
	for name, service := range names {
		clients[service] = append(clients[service], "https://"+name+CallbackPath)
	}
	f.issuer = gatetest.Start(t, []string{"writers"}, clients)
	f.Gate = NewGate(slog.New(slog.NewTextHandler(t.Output(), nil)))
	for name, service := range names {
		of := f.issuer.Delivered[service]
		s := GateSite{
			Name: name, Service: kit.ID("service/" + service).String(), Session: 8 * time.Hour, Own: true,
			Client: &GateClient{Issuer: of["issuer"], ID: of["clientId"], Secret: of["clientSecret"]},
		}
		for _, c := range change {
			c(&s)
		}
		f.sites[name] = s
	}
	f.set()
	return f
}

func (f *fixture) set() {
	var all []GateSite
	for _, s := range f.sites {
		all = append(all, s)
	}
	f.Set(all)
}

// browser is a browser that keeps cookies of public names and of the issuer.
func (f *fixture) browser() *http.Client {
	jar, err := cookiejar.New(nil)
	if err != nil {
		f.t.Fatal(err)
	}
	return &http.Client{Jar: jar, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// ask sends the request of a proxy to the gate, with the cookies of a browser.
func (f *fixture) ask(v *http.Client, name, path, target string, headers ...string) *http.Response {
	f.t.Helper()
	r := httptest.NewRequest(http.MethodGet, "http://gate"+path, nil)
	r.Host = name
	r.Header.Set(TargetHeader, target)
	r.Header.Set(MethodHeader, http.MethodGet)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	site := &url.URL{Scheme: "https", Host: name, Path: "/"}
	for _, c := range v.Jar.Cookies(site) {
		r.AddCookie(c)
	}
	w := httptest.NewRecorder()
	f.ServeHTTP(w, r)
	resp := w.Result()
	v.Jar.SetCookies(site, resp.Cookies())
	for _, c := range resp.Cookies() {
		if !c.Secure || !c.HttpOnly || c.SameSite != http.SameSiteLaxMode || c.Path != "/" || c.Domain != "" || !strings.HasPrefix(c.Name, "__Host-") {
			f.t.Errorf("cookie %s", c.Raw)
		}
	}
	return resp
}

// back signs a person in at the issuer and returns the path at the gate to which the browser
// returns.
func (f *fixture) back(v *http.Client, name, target, email string) string {
	f.t.Helper()
	resp := f.ask(v, name, EnterPath, target)
	if resp.StatusCode != http.StatusSeeOther {
		b, _ := io.ReadAll(resp.Body)
		f.t.Fatalf("%d %s, want a redirect to the issuer", resp.StatusCode, b)
	}
	to := gatetest.SignIn(f.t, v, resp.Header.Get("Location"), email)
	path, ok := strings.CutPrefix(to, "https://"+name)
	if !ok {
		f.t.Fatalf("the issuer redirects to %q", to)
	}
	return path
}

// signIn signs a person in, and returns the path to which the gate redirects the browser.
func (f *fixture) signIn(v *http.Client, name, target, email string) string {
	f.t.Helper()
	resp := f.ask(v, name, f.back(v, name, target, email), "")
	if resp.StatusCode != http.StatusSeeOther {
		b, _ := io.ReadAll(resp.Body)
		f.t.Fatalf("%d %s", resp.StatusCode, b)
	}
	return resp.Header.Get("Location")
}

func (f *fixture) admitted(v *http.Client, name string) bool {
	return f.ask(v, name, CheckPath, "/").StatusCode == http.StatusNoContent
}

func cookie(v *http.Client, name, cookie string) string {
	for _, c := range v.Jar.Cookies(&url.URL{Scheme: "https", Host: name, Path: "/"}) {
		if c.Name == cookie {
			return c.Value
		}
	}
	return ""
}

func put(v *http.Client, name, cookie, value string) {
	v.Jar.SetCookies(&url.URL{Scheme: "https", Host: name, Path: "/"}, []*http.Cookie{{Name: cookie, Value: value, Path: "/", Secure: true}})
}

// TestSession checks what the gate tells about a person, and that a session is valid for one public
// name only, while the client secret and the service stay the same.
func TestSession(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	v := f.browser()
	if f.admitted(v, "wiki.example") {
		t.Fatal("a browser without a session is admitted")
	}
	if at := f.signIn(v, "wiki.example", "/a/b?c=%2F", gatetest.Alice); at != "/a/b?c=%2F" {
		t.Errorf("the sign-in returns to %q", at)
	}
	resp := f.ask(v, "wiki.example", CheckPath, "/")
	for header, want := range map[string]string{"X-Florete-Email": gatetest.Alice, "X-Florete-Preferred-Username": "alice", "X-Florete-Groups": "writers"} {
		if got := resp.Header.Get(header); got != want {
			t.Errorf("%s: %q, want %q", header, got, want)
		}
	}
	if resp.Header.Get("X-Florete-User") == "" {
		t.Error("no subject")
	}
	value := cookie(v, "wiki.example", sessionCookie)
	for _, name := range []string{"docs.example", "other.example"} {
		if put(v, name, sessionCookie, value); f.admitted(v, name) {
			t.Errorf("the session is valid at %s", name)
		}
	}
	forged := []byte(value)
	forged[len(forged)/2] ^= 1
	for _, wrong := range []string{string(forged), value[:len(value)-2], value + "AA", "", "e30"} {
		if put(v, "wiki.example", sessionCookie, wrong); f.admitted(v, "wiki.example") {
			t.Errorf("a forged session is valid: %.20s", wrong)
		}
	}
	put(v, "wiki.example", sessionCookie, value)
	if !f.admitted(v, "wiki.example") {
		t.Error("the session itself is no longer valid, so this test sees nothing")
	}
	was := f.sites["wiki.example"]
	for what, change := range map[string]func(*GateSite){
		"another secret": func(s *GateSite) {
			s.Client = &GateClient{Issuer: s.Client.Issuer, ID: s.Client.ID, Secret: strings.Repeat("x", 43)}
		},
		"another service": func(s *GateSite) { s.Service += "2" },
		"no client":       func(s *GateSite) { s.Client = nil },
		"a shorter time":  func(s *GateSite) { s.Session = -time.Hour },
	} {
		s := was
		change(&s)
		f.sites["wiki.example"] = s
		if f.set(); f.admitted(v, "wiki.example") {
			t.Errorf("%s: the session goes on", what)
		}
	}
	// The state of a sign-in is not a session.
	f.sites["wiki.example"] = was
	f.set()
	w := f.browser()
	to, err := url.Parse(f.ask(w, "wiki.example", StartPath, "/").Header.Get("Location"))
	if err != nil {
		t.Fatal(err)
	}
	if put(w, "wiki.example", sessionCookie, to.Query().Get("state")); f.admitted(w, "wiki.example") {
		t.Error("the state of a sign-in is a session")
	}
}

// TestGroupNames checks that the gate tells the groups of a person under the names of the service,
// and that other names apply to a session that has begun.
func TestGroupNames(t *testing.T) {
	t.Parallel()
	for _, own := range []bool{true, false} {
		f := newFixture(t, func(s *GateSite) {
			s.Own = own
			s.Groups = map[string][]string{"editor": {"writers", "ops"}, "admin": {"ops"}, "author": {"writers"}}
		})
		v := f.browser()
		f.signIn(v, "wiki.example", "/", gatetest.Alice)
		groups := func() string { return f.ask(v, "wiki.example", CheckPath, "/").Header.Get("X-Florete-Groups") }
		if got := groups(); got != "author,editor" {
			t.Errorf("own issuer %t: groups %q", own, got)
		}
		s := f.sites["wiki.example"]
		s.Groups = map[string][]string{"admin": {"ops"}}
		f.sites["wiki.example"] = s
		f.set()
		if got := groups(); got != "" || !f.admitted(v, "wiki.example") {
			t.Errorf("own issuer %t: groups %q", own, got)
		}
	}
}

// TestSignIn checks that nobody can end the sign-in of another browser, or one sign-in twice.
func TestSignIn(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	victim, attacker := f.browser(), f.browser()
	path := f.back(attacker, "wiki.example", "/", gatetest.Alice)
	refused := func(what string, v *http.Client, name, path string) {
		t.Helper()
		resp := f.ask(v, name, path, "")
		if resp.StatusCode < 400 || cookie(v, name, sessionCookie) != "" && f.admitted(v, name) {
			t.Errorf("%s: status %d", what, resp.StatusCode)
		}
	}
	refused("the sign-in of another browser", victim, "wiki.example", path)
	f.ask(victim, "wiki.example", StartPath, "/") // the browser has begun one itself
	refused("the sign-in of another browser", victim, "wiki.example", path)
	u, err := url.Parse(path)
	if err != nil {
		t.Fatal(err)
	}
	q := u.Query()
	state := q.Get("state")
	with := func(key, value string) string {
		changed := url.Values{"code": {q.Get("code")}, "state": {state}}
		changed.Set(key, value)
		return CallbackPath + "?" + changed.Encode()
	}
	refused("no state", attacker, "wiki.example", with("state", ""))
	refused("a forged state", attacker, "wiki.example", with("state", state[:len(state)-3]+"AAA"))
	put(attacker, "other.example", browserCookie, cookie(attacker, "wiki.example", browserCookie))
	refused("the state of another service", attacker, "other.example", path)
	refused("an error of the issuer", attacker, "wiki.example", with("error", "access_denied"))
	other, err := url.Parse(f.ask(attacker, "wiki.example", StartPath, "/").Header.Get("Location"))
	if err != nil {
		t.Fatal(err)
	}
	refused("the code of another sign-in, which has another verifier", attacker, "wiki.example", with("state", other.Query().Get("state")))
	second := f.back(attacker, "wiki.example", "/", gatetest.Alice)
	if resp := f.ask(attacker, "wiki.example", second, ""); resp.StatusCode != http.StatusSeeOther {
		t.Fatalf("status %d: this test sees nothing", resp.StatusCode)
	}
	put(attacker, "wiki.example", sessionCookie, "none")
	refused("a code a second time", attacker, "wiki.example", second)
}

// TestSignInOnce checks the limits of a sign-in: its time, the method of the request that ends it,
// and the nonce of its ID token.
func TestSignInOnce(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	v := f.browser()
	path := f.back(v, "wiki.example", "/", gatetest.Alice)
	if resp := f.ask(v, "wiki.example", path, "", MethodHeader, http.MethodPost); resp.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("a form ends a sign-in: %d", resp.StatusCode)
	}
	f.later(loginTime + time.Second)
	if resp := f.ask(v, "wiki.example", path, ""); resp.StatusCode != http.StatusBadRequest {
		t.Errorf("a sign-in that began too long ago: %d", resp.StatusCode)
	}
	f.later(0)
	u, err := url.Parse(path)
	if err != nil {
		t.Fatal(err)
	}
	s := f.sites["wiki.example"]
	var b begun
	if !s.open(purposeLogin, u.Query().Get("state"), &b) {
		t.Fatal("the gate cannot open its own state")
	}
	other := b
	other.Nonce = randomName()
	if in, err := f.exchange(t.Context(), s, u.Query().Get("code"), other); err == nil || !strings.Contains(err.Error(), "not for this sign-in") {
		t.Errorf("the ID token of another sign-in: %v, %v", in, err)
	}
}

// TestStart checks that only a browser which opens a page is led to the issuer.
func TestStart(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	v := f.browser()
	for _, c := range []struct {
		headers []string
		want    int
	}{
		{nil, http.StatusSeeOther},
		{[]string{MethodHeader, http.MethodHead}, http.StatusSeeOther},
		{[]string{"Sec-Fetch-Mode", "navigate"}, http.StatusSeeOther},
		{[]string{MethodHeader, http.MethodPost}, http.StatusUnauthorized},
		{[]string{"Sec-Fetch-Mode", "cors"}, http.StatusUnauthorized},
		{[]string{"Sec-Fetch-Mode", "websocket"}, http.StatusUnauthorized},
		{[]string{UpgradeHeader, "websocket"}, http.StatusUnauthorized},
	} {
		for _, path := range []string{StartPath, EnterPath} {
			if resp := f.ask(v, "wiki.example", path, "/", c.headers...); resp.StatusCode != c.want {
				t.Errorf("%s with %q: status %d, want %d", path, c.headers, resp.StatusCode, c.want)
			}
		}
	}
}

// TestCookies checks that a value for one purpose is not valid for another, that two session
// cookies are none, and that no header has a value which a proxy could take for more than one.
func TestCookies(t *testing.T) {
	t.Parallel()
	f := newFixture(t, func(s *GateSite) { s.Own = false })
	s := f.sites["wiki.example"]
	in := session{Subject: "a", Name: "Zoë", Email: "a@example.org\r\nX-Forwarded-Groups: admins", Groups: []string{"writers"}, Begun: time.Now().Unix(), Until: time.Now().Add(time.Hour).Unix()}
	value := s.seal(purposeSession, in)
	if !s.open(purposeSession, value, new(session)) || s.open(purposeSession, s.seal(purposeLogin, in), new(session)) {
		t.Error("a value for one purpose is valid for another, or for none")
	}
	check := func(cookies ...string) *http.Response {
		r := httptest.NewRequest(http.MethodGet, "http://gate"+CheckPath, nil)
		r.Host = s.Name
		for _, c := range cookies {
			r.AddCookie(&http.Cookie{Name: sessionCookie, Value: c})
		}
		w := httptest.NewRecorder()
		f.ServeHTTP(w, r)
		return w.Result()
	}
	resp := check(value)
	if resp.StatusCode != http.StatusNoContent || resp.Header.Get("X-Florete-User") != "a" {
		t.Fatalf("%d %v: this test sees nothing", resp.StatusCode, resp.Header)
	}
	for _, header := range []string{"X-Florete-Preferred-Username", "X-Florete-Email"} {
		if got := resp.Header.Values(header); got != nil {
			t.Errorf("%s: %q", header, got)
		}
	}
	if resp := check(value, value); resp.StatusCode != http.StatusUnauthorized {
		t.Errorf("two session cookies: status %d", resp.StatusCode)
	}
}

// TestClaims checks which claims of an ID token become part of a session.
func TestClaims(t *testing.T) {
	no := false
	in := personClaims{Email: "a@example.org", Verified: &no, Name: "Alice", Groups: []string{"writers", "a,admins", "b\n"}}.session()
	if in.Email != "" || in.Name != "Alice" || len(in.Groups) != 1 || in.Groups[0] != "writers" {
		t.Errorf("got %+v", in)
	}
}

// TestGroups checks that a person outside the groups gets no session.
func TestGroups(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	v := f.browser()
	to := f.ask(v, "wiki.example", StartPath, "/").Header.Get("Location")
	if at := gatetest.SignIn(t, v, to, gatetest.Bob); at != "403" {
		t.Errorf("the issuer answers %q, want 403", at)
	}
}

// TestReturn checks that a sign-in returns only to paths of the public name.
func TestReturn(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	v := f.browser()
	for target, want := range map[string]string{
		"//evil.example/":              "/",
		"/\\evil.example/":             "/",
		"https://evil.example/":        "/",
		"evil.example":                 "/",
		"/\t/evil.example":             "/",
		"":                             "/",
		"/a\\b":                        "/",
		"/" + strings.Repeat("a", 2e3): "/",
		SignOutPath + "?x":             "/",
		"/a//b?next=//evil.example":    "/a//b?next=//evil.example",
	} {
		if at := f.signIn(v, "wiki.example", target, gatetest.Alice); at != want {
			t.Errorf("%.30q: the sign-in returns to %q, want %q", target, at, want)
		}
		put(v, "wiki.example", sessionCookie, "none")
	}
}

// TestSignOut checks that signing out ends all sessions of a person at a service, and that another
// site cannot sign a person out.
func TestSignOut(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	phone, laptop := f.browser(), f.browser()
	f.signIn(phone, "wiki.example", "/", gatetest.Alice)
	f.signIn(laptop, "docs.example", "/", gatetest.Alice)
	stolen := cookie(phone, "wiki.example", sessionCookie)
	f.signIn(phone, "other.example", "/", gatetest.Alice)
	for _, from := range []string{"cross-site", "same-site"} {
		if resp := f.ask(phone, "wiki.example", SignOutPath, "", "Sec-Fetch-Site", from); resp.StatusCode != http.StatusForbidden || !f.admitted(phone, "wiki.example") {
			t.Errorf("another site, %s, signs people out: %d", from, resp.StatusCode)
		}
	}
	if resp := f.ask(phone, "wiki.example", SignOutPath, ""); resp.StatusCode != http.StatusOK || f.admitted(phone, "wiki.example") || cookie(phone, "wiki.example", sessionCookie) != "" {
		t.Errorf("signing out: %d, cookie %q", resp.StatusCode, cookie(phone, "wiki.example", sessionCookie))
	}
	put(phone, "wiki.example", sessionCookie, stolen)
	if f.admitted(phone, "wiki.example") || f.admitted(laptop, "docs.example") {
		t.Error("another session of the person goes on")
	}
	if !f.admitted(phone, "other.example") {
		t.Error("the session at another service has ended")
	}
	// Another ingress learns it from the issuer.
	another := NewGate(slog.New(slog.NewTextHandler(t.Output(), nil)))
	f.Gate = another
	f.set()
	if f.later(time.Minute); f.admitted(phone, "wiki.example") {
		t.Error("the session goes on at another ingress")
	}
}

// TestRevoked checks that sessions end when a person is removed at the issuer, or leaves the
// groups, and that sessions go on for a while if the issuer does not answer.
func TestRevoked(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	v := f.browser()
	f.signIn(v, "wiki.example", "/", gatetest.Alice)
	f.later(2 * time.Minute)
	if !f.admitted(v, "wiki.example") {
		t.Fatal("the session of a person who may sign in ends")
	}
	s := f.sites["wiki.example"]
	s.Client = &GateClient{Issuer: s.Client.Issuer, ID: s.Client.ID, Secret: strings.Repeat("x", 43)}
	if about, err := f.Gate.ask(t.Context(), s, session{Subject: "a"}, false); err != nil || about.Active {
		t.Errorf("the client has ended: %+v, %v", about, err)
	}
	f.issuer.Stop()
	f.later(4 * time.Minute)
	if !f.admitted(v, "wiki.example") {
		t.Error("the session ends when the issuer does not answer")
	}
	f.later(2 * time.Hour)
	if f.admitted(v, "wiki.example") {
		t.Error("the session goes on although the issuer has not answered for an hour")
	}
	f.issuer.People(gatetest.Bob)
	f.later(3 * time.Hour)
	if f.admitted(v, "wiki.example") {
		t.Error("the session of a person goes on whom the issuer no longer knows")
	}
	f.issuer.People(gatetest.Alice)
	f.later(9 * time.Hour)
	if f.admitted(v, "wiki.example") {
		t.Error("the session is older than the longest session")
	}
}

// TestOtherIssuer checks that a session ends with its ID token if the issuer does not belong to the
// cluster.
func TestOtherIssuer(t *testing.T) {
	t.Parallel()
	f := newFixture(t, func(s *GateSite) { s.Own = false })
	v := f.browser()
	f.signIn(v, "wiki.example", "/", gatetest.Alice)
	f.issuer.Stop()
	f.later(59 * time.Minute)
	if !f.admitted(v, "wiki.example") {
		t.Error("the session ends before its ID token")
	}
	f.later(61 * time.Minute)
	if f.admitted(v, "wiki.example") {
		t.Error("the session outlives its ID token")
	}
}

// later sets the clock of the gate to a time after now.
func (f *fixture) later(d time.Duration) { f.Gate.now = func() time.Time { return time.Now().Add(d) } }
