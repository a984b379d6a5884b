package replay

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"embed"
	"html/template"
	"net"
	"net/http"
	"path"
	"strings"
	"time"

	"github.com/florete/florete/internal/conns"
	"github.com/florete/florete/internal/httpreply"
)

//go:embed page.css page.js asciinema-player/LICENSE asciinema-player/*.js asciinema-player/*.css
var files embed.FS

//go:embed page.html
var page string

var pageTemplate = template.Must(template.New("page").Parse(page))

// address is the IP address of the page. Only this machine can connect to it, but all its accounts
// can.
const address = "127.0.0.1"

// types are the content types of files, by the end of their name. The lists of the operating system
// are not used: they may lack a type, or have another.
var types = map[string]string{
	"":     "text/plain; charset=utf-8",
	".css": "text/css; charset=utf-8",
	".js":  "text/javascript; charset=utf-8",
}

// headers are in every reply. The player compiles WebAssembly.
var headers = map[string]string{
	"Cache-Control":                "no-store",
	"Content-Security-Policy":      "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; style-src 'self'; connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
	"Cross-Origin-Opener-Policy":   "same-origin",
	"Cross-Origin-Resource-Policy": "same-origin",
	"Referrer-Policy":              "no-referrer",
	"X-Content-Type-Options":       "nosniff",
}

// Serve serves a page that plays the recording, on a free port of the loopback address, until ctx
// ends. It calls ready with the URL of the page. Whoever has the URL can read the session: it
// contains a random text, which other accounts of the machine and other websites cannot guess.
func (r *Recording) Serve(ctx context.Context, ready func(url string)) error {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", net.JoinHostPort(address, "0"))
	if err != nil {
		return err
	}
	secret := rand.Text()
	hs := &http.Server{Handler: r.handler(secret), ReadHeaderTimeout: 10 * time.Second}
	ready("http://" + l.Addr().String() + "/" + secret + "/")
	return conns.Serve(ctx, hs, l)
}

// handler returns the page, whose path is secret.
func (r *Recording) handler(secret string) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", r.servePage)
	mux.HandleFunc("GET /recording.cast", r.serveCast)
	mux.HandleFunc("GET /", serveFile)
	below := http.StripPrefix("/"+secret, mux)
	return http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		for name, value := range headers {
			w.Header().Set(name, value)
		}
		if status, err := httpreply.OwnPage(q, func(name string) bool { return name == address }, address); err != nil {
			http.Error(w, err.Error(), status)
			return
		}
		first, _, _ := strings.Cut(strings.TrimPrefix(q.URL.Path, "/"), "/")
		if subtle.ConstantTimeCompare([]byte(first), []byte(secret)) != 1 {
			http.NotFound(w, q)
			return
		}
		below.ServeHTTP(w, q)
	})
}

func (r *Recording) servePage(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_ = pageTemplate.Execute(w, struct {
		Title string
		Facts []fact
	}{r.Title, r.facts()}) // fails only if the browser has gone
}

func (r *Recording) serveCast(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/x-asciicast")
	if r.WriteCast(w) != nil {
		panic(http.ErrAbortHandler) // so that the browser does not take a part for the whole
	}
}

func serveFile(w http.ResponseWriter, q *http.Request) {
	name := strings.TrimPrefix(q.URL.Path, "/")
	b, err := files.ReadFile(name)
	if err != nil {
		http.NotFound(w, q)
		return
	}
	w.Header().Set("Content-Type", types[path.Ext(name)])
	_, _ = w.Write(b)
}
