package oidc

import (
	"context"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"strings"

	dex "github.com/dexidp/dex/server"

	"github.com/florete/florete/internal/conns"
)

const longestEmail, longestPassword = 254, 1024

// login serves the page of a sign-in, and receives the email address and password from it.
func (s *issuerServer) login(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	in := s.goOn(w, r)
	if in == nil {
		return
	}
	ctx := context.WithValue(r.Context(), signInKey{}, in)
	if r.Method != http.MethodPost {
		s.dex.ServeHTTP(w, r.WithContext(ctx))
		return
	}
	if err := http.NewCrossOriginProtection().Check(r); err != nil {
		s.page(w, http.StatusForbidden, "Not from here", "This form was sent by a page of another site.")
		return
	}
	// Dex reads the value in the body, or else the one in the URL.
	account, password := strings.ToLower(r.FormValue("login")), r.FormValue("password")
	if len(account) > longestEmail || len(password) > longestPassword {
		s.page(w, http.StatusBadRequest, "Bad request",
			fmt.Sprintf("Want an email address of at most %d bytes and a password of at most %d.", longestEmail, longestPassword))
		return
	}
	who := person(in.connector, account)
	known := s.signIns.known(r, in.browser, who)
	by := []guesser{{"account", who}}
	network := ""
	if known {
		by = []guesser{{"browser", in.browser}}
	} else if from := conns.Prefix(in.from); from.IsValid() && !from.Addr().IsLoopback() {
		// The forwarder's own address is everybody's.
		network = from.String()
		by = append(by, guesser{"network", network})
	}
	s.checkPassword(w, r.WithContext(ctx), in, account, known, network, by)
}

// goOn returns the sign-in that a browser continues. If there is none, it shows an error page and
// returns nil.
func (s *issuerServer) goOn(w http.ResponseWriter, r *http.Request) *signIn {
	in := &signIn{from: r.RemoteAddr, browser: s.signIns.browser(r), signed: func() {}}
	request, ok := s.signIns.open(r.URL.Query().Get("state"), in.browser)
	if in.connector = request.ConnectorID; !ok {
		s.page(w, http.StatusBadRequest, "Sign in again",
			"This sign-in was begun in another browser, or too long ago, or the browser takes no cookies. Go back to the service and sign in from there.")
		return nil
	}
	return in
}

// callback serves the page to which an upstream issuer redirects a browser.
func (s *issuerServer) callback(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	in := s.goOn(w, r)
	if in == nil {
		return
	}
	s.dex.ServeHTTP(&overruled{ResponseWriter: w, server: s, in: in, failed: &notThere}, r.WithContext(context.WithValue(r.Context(), signInKey{}, in)))
	if in.outside != "" {
		s.refused(r, in, in.account, in.outside, codeOutside, errOutside.Error())
	}
}

// checkPassword lets Dex check a password, unless there were too many wrong guesses.
func (s *issuerServer) checkPassword(w http.ResponseWriter, r *http.Request, in *signIn, account string, known bool, network string, by []guesser) {
	if wait := s.guard.guess(by...); wait > 0 {
		seconds := int(math.Ceil(wait.Seconds()))
		w.Header().Set("Retry-After", strconv.Itoa(seconds))
		s.page(w, http.StatusTooManyRequests, "Wait a moment",
			fmt.Sprintf("Too many wrong passwords. Wait %d seconds, then go back and try again. A browser in which you signed in before need not wait.", seconds))
		s.refused(r, in, account, "", codeSlowed, fmt.Sprintf("%d seconds before the next guess", seconds))
		return
	}
	done, ok := func() {}, true
	if in.connector == dex.LocalConnector { // others check elsewhere
		done, ok = s.guard.check(r.Context(), known, network)
	}
	if !ok {
		s.guard.undo(by...)
		w.Header().Set("Retry-After", "5")
		s.page(w, http.StatusServiceUnavailable, "Busy", "Many people sign in just now. Wait some seconds, then go back and try again.")
		return
	}
	defer done()
	right := false
	in.signed = func() {
		right = true
		s.guard.right(by[0]) // a network may guess at other accounts
		s.signIns.signedIn(w, in.browser, person(in.connector, account))
	}
	s.dex.ServeHTTP(&overruled{ResponseWriter: w, server: s, in: in}, r)
	switch {
	case right:
	case in.outside != "":
		s.guard.right(by[0])
		s.refused(r, in, account, in.outside, codeOutside, errOutside.Error())
	case in.instead != nil:
		s.guard.undo(by...)
	default:
		s.refused(r, in, account, "", codePassword, "account and password do not match")
	}
}

// refused writes an audit row about a refused sign-in. Accounts that do not exist are counted
// together. The call takes the same time for them as for other accounts.
func (s *issuerServer) refused(r *http.Request, in *signIn, account, client, code, message string) {
	row := refusal(in.from, "sign-in", account, client, code, message)
	if s.account(account) {
		row.CountAs = code + " " + account
	}
	if err := s.audit.Stranger(context.WithoutCancel(r.Context()), row); err != nil {
		s.log.Error("a refused sign-in is not in the audit log", "error", err)
	}
}
