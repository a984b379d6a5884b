package oidc

import "net/http"

// instead is a page that is shown instead of Dex's.
type instead struct {
	status      int
	title, text string
}

// overruled shows the page that a sign-in wants shown instead of Dex's.
type overruled struct {
	http.ResponseWriter
	server *issuerServer
	in     *signIn
	shown  bool
}

func (w *overruled) WriteHeader(status int) {
	switch {
	case w.shown:
	case w.in.instead != nil:
		w.shown = true
		w.server.page(w.ResponseWriter, w.in.instead.status, w.in.instead.title, w.in.instead.text)
	default:
		w.ResponseWriter.WriteHeader(status)
	}
}

func (w *overruled) Write(b []byte) (int, error) {
	if w.in.instead != nil {
		w.WriteHeader(http.StatusOK)
		return len(b), nil
	}
	return w.ResponseWriter.Write(b)
}
