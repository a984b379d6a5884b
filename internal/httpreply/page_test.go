package httpreply

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

func TestOwnPage(t *testing.T) {
	own := func(name string) bool { return name == "wiki.demo.flor.rete" || name == "::1" }
	for _, c := range []struct {
		host, header, value string
		want                int
	}{
		{"wiki.demo.flor.rete", "", "", http.StatusOK},
		{"WIKI.demo.flor.rete.:8080", "", "", http.StatusOK},
		{"[::1]:80", "", "", http.StatusOK},
		{"evil.example", "", "", http.StatusMisdirectedRequest},
		{"", "", "", http.StatusMisdirectedRequest},
		{"wiki.demo.flor.rete", "Sec-Fetch-Site", "same-origin", http.StatusOK},
		{"wiki.demo.flor.rete", "Sec-Fetch-Site", "none", http.StatusOK},
		{"wiki.demo.flor.rete", "Sec-Fetch-Site", "cross-site", http.StatusForbidden},
		{"wiki.demo.flor.rete:81", "Origin", "http://wiki.demo.flor.rete:81", http.StatusOK},
		{"wiki.demo.flor.rete:81", "Origin", "http://wiki.demo.flor.rete:82", http.StatusForbidden},
		{"WIKI.demo.flor.rete.:80", "Origin", "http://wiki.demo.flor.rete", http.StatusOK},
		{"wiki.demo.flor.rete", "Origin", "https://wiki.demo.flor.rete", http.StatusForbidden},
		{"wiki.demo.flor.rete", "Origin", "null", http.StatusForbidden},
		{"wiki.demo.flor.rete", "Origin", "http://evil.example", http.StatusForbidden},
	} {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.Host = c.host
		if c.header != "" {
			r.Header.Set(c.header, c.value)
		}
		if got, err := OwnPage(r, own, "its name"); got != c.want || (err == nil) != (got == http.StatusOK) {
			t.Errorf("%+v: %d, %v", c, got, err)
		}
	}
}

// TestJSON checks that JSON keeps a Cache-Control header that the handler has set.
func TestJSON(t *testing.T) {
	w := httptest.NewRecorder()
	w.Header().Set("Cache-Control", "max-age=60")
	JSON(w, http.StatusConflict, map[string]string{"error": "<a>"})
	if w.Code != http.StatusConflict || w.Body.String() != `{"error":"\u003ca\u003e"}` || w.Header().Get("Cache-Control") != "max-age=60" ||
		w.Header().Get("Content-Type") != "application/json" || w.Header().Get("X-Content-Type-Options") != "nosniff" {
		t.Errorf("%d %v %s", w.Code, w.Header(), w.Body)
	}
	w = httptest.NewRecorder()
	Encoded(w, http.StatusOK, []byte("{\n}"))
	if w.Body.String() != "{\n}" || w.Header().Get("Cache-Control") != "no-store" {
		t.Errorf("%v %s", w.Header(), w.Body)
	}
}
