package oidc

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/oauth2"
)

// chromium is a browser without a window, driven by the Chrome DevTools protocol over pipes.
type chromium struct {
	t       *testing.T
	to      *os.File
	from    *bufio.Reader
	id      int
	session string
}

// newChromium starts a browser in which names lead to addresses, as the forwarder makes them.
func newChromium(t *testing.T, names map[string]string) *chromium {
	t.Helper()
	path, err := exec.LookPath("chromium")
	if err != nil {
		t.Skip("NOT RUN: nobody signs in with a browser: install package chromium")
	}
	var rules []string
	for name, address := range names {
		rules = append(rules, "MAP "+name+" "+address)
	}
	in, to, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	from, out, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command(path, "--headless=new", "--remote-debugging-pipe", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
		"--disable-background-networking", "--user-data-dir="+t.TempDir(), "--host-resolver-rules="+strings.Join(rules, ","), "--no-proxy-server")
	c.ExtraFiles = []*os.File{in, out} // 3 and 4
	c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	in.Close()
	out.Close()
	t.Cleanup(func() {
		_ = syscall.Kill(-c.Process.Pid, syscall.SIGKILL)
		_ = c.Wait()
		to.Close()
		from.Close()
	})
	stuck := time.AfterFunc(2*patience, func() { _ = syscall.Kill(-c.Process.Pid, syscall.SIGKILL) })
	t.Cleanup(func() { stuck.Stop() })
	b := &chromium{t: t, to: to, from: bufio.NewReader(from)}
	var target struct{ TargetID string }
	b.call("Target.createTarget", map[string]any{"url": "about:blank"}, &target)
	var attached struct{ SessionID string }
	b.call("Target.attachToTarget", map[string]any{"targetId": target.TargetID, "flatten": true}, &attached)
	b.session = attached.SessionID
	b.call("Emulation.setDeviceMetricsOverride", map[string]any{"width": 800, "height": 600, "deviceScaleFactor": 1, "mobile": false}, nil)
	return b
}

// call is one command and its answer. Events in between are left out.
func (b *chromium) call(method string, params any, into any) {
	b.t.Helper()
	b.id++
	m := map[string]any{"id": b.id, "method": method, "params": params}
	if b.session != "" {
		m["sessionId"] = b.session
	}
	if _, err := b.to.Write(append(must(json.Marshal(m)), 0)); err != nil {
		b.t.Fatalf("%s: %v", method, err)
	}
	for {
		line, err := b.from.ReadBytes(0)
		if err != nil {
			b.t.Fatalf("%s: %v", method, err)
		}
		var answer struct {
			ID     int
			Result json.RawMessage
			Error  json.RawMessage
		}
		if err := json.Unmarshal(line[:len(line)-1], &answer); err != nil {
			b.t.Fatal(err)
		}
		if answer.ID != b.id {
			continue
		}
		if answer.Error != nil {
			b.t.Fatalf("%s: %s", method, answer.Error)
		}
		if into != nil {
			must(0, json.Unmarshal(answer.Result, into))
		}
		return
	}
}

// eval is what a script returns; nil where it throws, as on a page that is being left.
func (b *chromium) eval(script string) any {
	b.t.Helper()
	var r struct{ Result struct{ Value any } }
	b.call("Runtime.evaluate", map[string]any{"expression": script, "returnByValue": true}, &r)
	return r.Result.Value
}

// wait waits until a script returns true.
func (b *chromium) wait(script string) {
	b.t.Helper()
	for deadline := time.Now().Add(patience); b.eval(script) != true; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			b.t.Fatalf("%s is not so; the page is %v\n%v", script, b.eval("location.href"), b.eval("document.body.innerText"))
		}
	}
}

// write types into a field.
func (b *chromium) write(field, text string) {
	b.t.Helper()
	b.eval(fmt.Sprintf("document.querySelector(%q).focus()", field))
	b.call("Input.insertText", map[string]any{"text": text}, nil)
}

// picture writes what the page looks like to the artifacts of the test, and wants it not to be blank.
func (b *chromium) picture(name string) {
	b.t.Helper()
	var shot struct{ Data string }
	b.call("Page.captureScreenshot", map[string]any{"format": "png"}, &shot)
	raw, err := base64.StdEncoding.DecodeString(shot.Data)
	if err != nil {
		b.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(b.t.ArtifactDir(), name+".png"), raw, 0o600); err != nil {
		b.t.Fatal(err)
	}
	picture, err := png.Decode(strings.NewReader(string(raw)))
	if err != nil {
		b.t.Fatal(err)
	}
	if n := colors(picture); n < 20 {
		b.t.Errorf("%s has %d colors: is it blank?", name, n)
	}
}

func colors(p image.Image) int {
	seen := map[color.Color]bool{}
	for y := range p.Bounds().Dy() {
		for x := range p.Bounds().Dx() {
			seen[p.At(x, y)] = true
		}
	}
	return len(seen)
}

// app is outline: who comes without having signed in is sent to do so.
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

// TestBrowser: somebody of the directory signs in with a browser as people have one.
func TestBrowser(t *testing.T) {
	t.Parallel()
	f, _ := newLDAP(t, func(r *Request) { r.AllowedGroups = []string{"writers"} })
	s := f.service(f.register(1))
	s.Scopes = append(s.Scopes, "groups")
	app := httptest.NewServer(s.app())
	t.Cleanup(app.Close)
	b := newChromium(t, map[string]string{"auth.demo.flor.rete": f.listen, "outline.demo.flor.rete": app.Listener.Addr().(*net.TCPAddr).String()})

	visit := func() {
		b.call("Page.navigate", map[string]any{"url": "http://outline.demo.flor.rete/"}, nil)
		b.wait(`document.querySelectorAll("a.button").length == 2`)
	}
	signIn := func(name, secret string) {
		b.eval(`[...document.querySelectorAll("a.button")].find(a => a.innerText.includes("Staff directory")).click()`)
		b.wait(`document.activeElement.id == "login"`)
		b.write("#login", name)
		b.write("#password", secret)
		b.eval(`document.querySelector("button[type=submit]").click()`)
	}
	visit()
	b.picture("choice")
	signIn("alice", "guess")
	b.wait(`document.querySelector("#refused")?.innerText == "That username and password do not match."`)
	b.picture("refused")
	visit()
	signIn("bob", "password of bob")
	b.wait(`document.querySelector("h1")?.innerText == "Not for you"`)
	b.picture("outside")
	visit()
	signIn("alice", "password of alice")
	b.wait(`document.querySelector("#who")?.innerText.startsWith("alice@demo.flor of ")`)
	b.picture("signed-in")
}
