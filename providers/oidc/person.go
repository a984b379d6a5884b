package oidc

import (
	"crypto/subtle"
	"net/http"
	"net/url"
	"strconv"
	"time"

	dex "github.com/dexidp/dex/server"
	"github.com/dexidp/dex/storage"

	"github.com/florete/florete/internal/httpreply"
)

// endedLives is the time for which the end of a person's sessions at a client is remembered. It is
// longer than the longest session that a topology can declare.
const endedLives = 31 * 24 * time.Hour

// person tells a client whether the session of a person may go on, and ends the sessions of the
// person if the client asks for it. It is not part of OpenID Connect: the sign-in in front of
// services (package ingress of the agent) uses it.
//
//	POST /person sub=CgExEgVsb2NhbA&since=1760000000&end=true, with client_secret_basic
//	→ {"active":true,"groups":["writers"]}
//
// The provider reads the groups of people in the users file. It cannot read those of other people
// without a token of theirs, so their sessions end after the lifetime of an ID token.
func (s *issuerServer) person(w http.ResponseWriter, r *http.Request) {
	id, secret, _ := r.BasicAuth()
	id, err := url.QueryUnescape(id)
	if err == nil {
		secret, err = url.QueryUnescape(secret)
	}
	x := &exchange{from: r.RemoteAddr, presented: secret}
	ctx := withExchange(r.Context(), x)
	client, failure := s.storage.GetClient(ctx, id)
	switch {
	case failure != nil && failure != storage.ErrNotFound:
		s.log.Error("cannot read a client", "error", failure)
		http.Error(w, "the provider failed: its log has the reason", http.StatusInternalServerError)
		return
	case err != nil || failure != nil || client.Public || client.Secret == "" || subtle.ConstantTimeCompare([]byte(client.Secret), []byte(secret)) != 1:
		w.Header().Set("WWW-Authenticate", `Basic realm="clients"`)
		http.Error(w, "want the ID and the secret of a client", http.StatusUnauthorized)
		return
	}
	subject := r.PostFormValue("sub")
	since, err := strconv.ParseInt(r.PostFormValue("since"), 10, 64)
	if err != nil || subject == "" {
		http.Error(w, "want sub and since", http.StatusBadRequest)
		return
	}
	user, connector := presented(subject)
	if r.PostFormValue("end") == "true" {
		if err := s.signOut(r, idHint{Subject: subject, Audience: id, Email: s.emailOf(user, connector)}); err != nil {
			s.log.Error("a sign-out failed", "error", err)
			http.Error(w, "the provider failed: its log has the reason", http.StatusInternalServerError)
			return
		}
	}
	begun := time.Unix(since, 0)
	ended, err := s.tokens.ended(r.Context(), id, person(connector, user), begun)
	if err != nil {
		s.log.Error("cannot tell whether a session was ended", "error", err)
		http.Error(w, "the provider failed: its log has the reason", http.StatusInternalServerError)
		return
	}
	var answer struct {
		Active bool     `json:"active"`
		Groups []string `json:"groups,omitzero"`
	}
	if connector != dex.LocalConnector {
		answer.Active = connector != "" && !ended && time.Since(begun) < tokensLive
	} else if u, ok := s.users[user]; ok && !ended && s.policy().allows(id, u.Groups) {
		answer.Active, answer.Groups = true, append([]string{}, u.Groups...)
	}
	httpreply.JSON(w, http.StatusOK, answer)
}

// emailOf returns the email address of a person in the users file, for the audit log.
func (s *issuerServer) emailOf(user, connector string) string {
	if connector != dex.LocalConnector {
		return ""
	}
	return s.users[user].Email
}

// byID returns the people of the users file by their permanent ID.
func byID(users []storage.Password) map[string]storage.Password {
	all := map[string]storage.Password{}
	for _, u := range users {
		all[u.UserID] = u
	}
	return all
}
