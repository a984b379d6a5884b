package oidc

import "net/http"

// instead is a page that is shown in place of a page of Dex.
type instead struct {
	status      int
	title, text string
}

// overruled is a ResponseWriter that replaces a page of Dex if the sign-in has another page to show
// (signIn.instead).
type overruled struct {
	http.ResponseWriter
	server *issuerServer
	in     *signIn
	failed *instead // for where Dex fails; nil for its own page
	shown  bool
}

// notThere is the page that is shown if an upstream issuer does not answer.
var notThere = instead{http.StatusServiceUnavailable, "Not now",
	"Where you want to sign in, nobody answers, or something is wrong. Go back to the service and try again; the log of the provider has the reason."}

func (w *overruled) WriteHeader(status int) {
	if status >= http.StatusInternalServerError && w.in.instead == nil {
		w.in.instead = w.failed
	}
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
