// Package chromium lets tests use a real browser.
package chromium

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/florete/florete/tests/kit"
)

// patience bounds the wait for pages of programs that generate keys on a slow machine.
const patience = time.Minute

// Browser is a headless Chromium that a test controls through the Chrome DevTools Protocol. Its
// methods fail the test if Chromium does not answer.
type Browser struct {
	t       *testing.T
	to      *os.File
	from    *bufio.Reader
	id      int
	session string
	stuck   *time.Timer // kills the browser, and so ends a Call that hangs
}

// Config is the configuration of a browser.
type Config struct {
	Names map[string]string // addresses by host name; "*" stands for all names
	Roots []string          // files of certificates (PEM) trusted for websites, in addition to the built-in ones
}

// Require returns the path of a program in PATH. If there is no such program, it skips the test.
// The last argument is the name of the Debian package with the program, for the message.
func Require(t *testing.T, program, in string) string {
	t.Helper()
	path, err := exec.LookPath(program)
	if err != nil {
		t.Skip("NOT RUN: no browser opens a page: no " + program + " in PATH, on Debian it is in the package " + in + ", which tests/run installs")
	}
	return path
}

// Start starts a browser that runs until the end of the test.
func Start(t *testing.T, c Config) *Browser {
	t.Helper()
	path := Require(t, "chromium", "chromium")
	var rules []string
	for name, address := range c.Names {
		rules = append(rules, "MAP "+name+" "+address)
	}
	home := t.TempDir()
	trust(t, home, c.Roots)
	in, to, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	from, out, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(path, "--headless=new", "--remote-debugging-pipe", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
		"--disable-background-networking", "--user-data-dir="+filepath.Join(home, "profile"), "--host-resolver-rules="+strings.Join(rules, ","), "--no-proxy-server")
	cmd.Env = append(os.Environ(), "HOME="+home)
	cmd.ExtraFiles = []*os.File{in, out} // file descriptors 3 and 4
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	in.Close()
	out.Close()
	t.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		_ = cmd.Wait()
		to.Close()
		from.Close()
	})
	b := &Browser{t: t, to: to, from: bufio.NewReader(from)}
	b.stuck = time.AfterFunc(2*patience, func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) })
	t.Cleanup(func() { b.stuck.Stop() })
	var target struct{ TargetID string }
	b.Call("Target.createTarget", map[string]any{"url": "about:blank"}, &target)
	var attached struct{ SessionID string }
	b.Call("Target.attachToTarget", map[string]any{"targetId": target.TargetID, "flatten": true}, &attached)
	b.session = attached.SessionID
	b.Call("Emulation.setDeviceMetricsOverride", map[string]any{"width": 800, "height": 600, "deviceScaleFactor": 1, "mobile": false}, nil)
	return b
}

// Call sends a command of the Chrome DevTools Protocol, and decodes the result into the argument
// into, unless that is nil. It skips events that arrive before the result.
func (b *Browser) Call(method string, params any, into any) {
	b.t.Helper()
	b.stuck.Reset(2 * patience)
	b.id++
	m := map[string]any{"id": b.id, "method": method, "params": params}
	if b.session != "" {
		m["sessionId"] = b.session
	}
	command, err := json.Marshal(m)
	if err == nil {
		_, err = b.to.Write(append(command, 0))
	}
	if err != nil {
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
		if into == nil {
			return
		}
		if err := json.Unmarshal(answer.Result, into); err != nil {
			b.t.Fatalf("%s: %v", method, err)
		}
		return
	}
}

// Eval returns the value of a script in the page. If the script throws an exception, which can
// happen while the browser leaves the page, Eval returns nil.
func (b *Browser) Eval(script string) any {
	b.t.Helper()
	var r struct{ Result struct{ Value any } }
	b.Call("Runtime.evaluate", map[string]any{"expression": script, "returnByValue": true}, &r)
	return r.Result.Value
}

// Wait waits until a script returns true.
func (b *Browser) Wait(script string) {
	b.t.Helper()
	kit.Succeeds(b.t, script, func() error {
		if b.Eval(script) != true {
			return fmt.Errorf("the page is %v\n%v", b.Eval("location.href"), b.Eval("document.body.innerText"))
		}
		return nil
	})
}

// Write focuses the first element that a CSS selector matches, and types text into it.
func (b *Browser) Write(field, text string) {
	b.t.Helper()
	b.Eval(fmt.Sprintf("document.querySelector(%q).focus()", field))
	b.Call("Input.insertText", map[string]any{"text": text}, nil)
}

// Visit opens a page and returns "". If the browser cannot load the page, Visit returns the reason,
// such as "net::ERR_CONNECTION_REFUSED".
func (b *Browser) Visit(url string) (refusal string) {
	b.t.Helper()
	var r struct{ ErrorText string }
	b.Call("Page.navigate", map[string]any{"url": url}, &r)
	return r.ErrorText
}

// Picture writes a screenshot to the file name.png in the artifact directory of the test. If the
// screenshot is blank, the test fails.
func (b *Browser) Picture(name string) {
	b.t.Helper()
	var shot struct{ Data string }
	b.Call("Page.captureScreenshot", map[string]any{"format": "png"}, &shot)
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

// trust makes the browser with this home directory trust roots, as if the user had imported them.
func trust(t *testing.T, home string, roots []string) {
	t.Helper()
	if len(roots) == 0 {
		return
	}
	certutil := Require(t, "certutil", "libnss3-tools")
	db := filepath.Join(home, ".pki", "nssdb")
	if err := os.MkdirAll(db, 0o700); err != nil {
		t.Fatal(err)
	}
	commands := [][]string{{"-N", "--empty-password"}}
	for i, root := range roots {
		commands = append(commands, []string{"-A", "-t", "C,,", "-n", fmt.Sprint("root ", i), "-i", root})
	}
	for _, args := range commands {
		if out, err := exec.Command(certutil, append([]string{"-d", "sql:" + db}, args...)...).CombinedOutput(); err != nil {
			t.Fatalf("certutil %s: %v: %s", args[0], err, out)
		}
	}
}
