package replay

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"filippo.io/age"

	"github.com/florete/florete/tests/kit/replaytest"
)

// TestHandler checks who can read a session, and that no reply may be stored or framed.
func TestHandler(t *testing.T) {
	key, _ := replaytest.Key(t)
	r, err := Open(replaytest.Session{Output: []string{"hunter2"}}.Write(t, key), []age.Identity{key})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	h := r.handler("SECRET")
	for _, c := range []struct {
		method, host, path, header, value string
		status                            int
		body, of                          string
	}{
		{path: "/SECRET/", status: 200, body: "alice as deploy at shell@eu", of: "text/html; charset=utf-8"},
		{path: "/SECRET/recording.cast", status: 200, body: "hunter2", of: "application/x-asciicast"},
		{path: "/SECRET/page.js", status: 200, body: "AsciinemaPlayer", of: "text/javascript; charset=utf-8"},
		{path: "/SECRET/page.css", status: 200, body: "color", of: "text/css; charset=utf-8"},
		{path: "/SECRET/asciinema-player/LICENSE", status: 200, body: "Apache License", of: "text/plain; charset=utf-8"},
		{path: "/SECRET/recording.cast", header: "Sec-Fetch-Site", value: "same-origin", status: 200, body: "hunter2"},
		{path: "/", status: 404},
		{path: "/recording.cast", status: 404},
		{path: "/secret/recording.cast", status: 404},
		{path: "/SECRE/recording.cast", status: 404},
		{path: "/SECRETS/recording.cast", status: 404},
		{path: "/x/../SECRE/recording.cast", status: 404},
		{path: "/SECRET/page.html", status: 404},
		{path: "/SECRET/asciinema-player", status: 404},
		{method: http.MethodPost, path: "/SECRET/recording.cast", status: 405},
		{host: "evil.example:8000", path: "/SECRET/recording.cast", status: 421},
		{host: "localhost:8000", path: "/SECRET/", status: 421},
		{path: "/SECRET/recording.cast", header: "Sec-Fetch-Site", value: "cross-site", status: 403},
		{path: "/SECRET/recording.cast", header: "Sec-Fetch-Site", value: "same-site", status: 403},
		{path: "/SECRET/recording.cast", header: "Origin", value: "http://127.0.0.1:8001", status: 403},
	} {
		if c.method == "" {
			c.method = http.MethodGet
		}
		if c.host == "" {
			c.host = "127.0.0.1:8000"
		}
		q := httptest.NewRequest(c.method, c.path, nil)
		q.Host = c.host
		if c.header != "" {
			q.Header.Set(c.header, c.value)
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, q)
		if w.Code != c.status || !strings.Contains(w.Body.String(), c.body) || c.of != "" && w.Header().Get("Content-Type") != c.of {
			t.Errorf("%+v: %d %v\n%.300s", c, w.Code, w.Header(), w.Body)
		}
		if w.Code != http.StatusOK && strings.Contains(w.Body.String(), "hunter2") {
			t.Errorf("%+v: the session is in the refusal", c)
		}
		for name, want := range map[string]string{"Cache-Control": "no-store", "Content-Security-Policy": "default-src 'none'", "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer"} {
			if got := w.Header().Get(name); !strings.Contains(got, want) {
				t.Errorf("%+v: header %s is %q, want %q", c, name, got, want)
			}
		}
	}
}
