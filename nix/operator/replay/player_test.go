package replay

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"path"
	"strings"
	"testing"

	"filippo.io/age"

	"github.com/florete/florete/tests/chromium"
	"github.com/florete/florete/tests/kit/replaytest"
)

// TestPlayer checks that the player is the published one. Its README says where it is from.
func TestPlayer(t *testing.T) {
	for name, want := range map[string]string{
		"LICENSE":                 "63422284ed65be54ab38d8a94e7518d27e222fbb26c9ae4cd984c63926e91c12",
		"asciinema-player.css":    "981fe7bc6042048b2a373b6da297f747e324e90a8b6264e833e3a92cec22dfb9",
		"asciinema-player.min.js": "752c9b528b664f5b16f27c68ba22fc7973d1d6063a1c3e4795a4c8015943acf6",
	} {
		b, err := files.ReadFile(path.Join("asciinema-player", name))
		if err != nil {
			t.Fatal(err)
		}
		if got := sha256.Sum256(b); hex.EncodeToString(got[:]) != want {
			t.Errorf("%s: SHA-256 is %x, want %s", name, got, want)
		}
	}
}

// TestBrowser checks that a browser plays recordings, and that the page does nothing that its
// Content-Security-Policy forbids.
func TestBrowser(t *testing.T) {
	t.Parallel()
	chromium.Require(t, "chromium", "chromium")
	key, _ := replaytest.Key(t)
	for name, c := range map[string]struct {
		session replaytest.Session
		want    string // rows of the terminal
	}{
		"shell": {
			replaytest.Session{Output: []string{"deploy@ursula:~$ ", "uptime\r\n", " 11:02:51 up \x1b[1;32m3 days\x1b[0m, 1 user €\r\n", "deploy@ursula:~$ exit\r\n"}, Ends: true},
			"deploy@ursula:~$ uptime\n 11:02:51 up 3 days, 1 user €\ndeploy@ursula:~$ exit",
		},
		"command": {replaytest.Session{Command: "ls <b>", Output: []string{"one\n", "two\nthree\n"}, Ends: true}, "one\ntwo\nthree"},
		"goes-on": {replaytest.Session{Output: []string{"vim\r\n", "no end"}}, "vim\nno end"},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := Open(c.session.Write(t, key), []age.Identity{key})
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			ctx, stop := context.WithCancel(t.Context())
			url, ended := make(chan string, 1), make(chan error, 1)
			go func() { ended <- r.Serve(ctx, func(s string) { url <- s }) }()
			defer func() {
				stop()
				if err := <-ended; err != nil {
					t.Error(err)
				}
			}()
			b := chromium.Start(t, chromium.Config{})
			b.Call("Page.enable", struct{}{}, nil)
			b.Call("Page.addScriptToEvaluateOnNewDocument", map[string]any{
				"source": `window.violations = []; addEventListener("securitypolicyviolation", e => violations.push(e.violatedDirective + " " + e.blockedURI));`,
			}, nil)
			select {
			case s := <-url:
				if refusal := b.Visit(s); refusal != "" {
					t.Fatal(refusal)
				}
			case err := <-ended:
				t.Fatal(err)
			}
			rows := `[...document.querySelectorAll(".ap-term .ap-line")].map(r => r.textContent.trimEnd()).join("\n").trimEnd()`
			b.Wait(`document.activeElement.classList.contains("ap-wrapper")`)
			b.Wait(rows + " == " + quoted(c.want))
			b.Wait(`[...document.querySelectorAll("dd")].some(d => d.innerText == ` + quoted(r.SHA256) + `)`)
			if got := b.Eval(`JSON.stringify(violations)`); got != "[]" {
				t.Errorf("forbidden by the Content-Security-Policy: %v", got)
			}
			b.Picture(name)
		})
	}
}

// quoted returns s as a string of JavaScript.
func quoted(s string) string {
	return "`" + strings.NewReplacer("\\", "\\\\", "`", "\\`", "$", "\\$").Replace(s) + "`"
}
