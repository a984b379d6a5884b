package ingress

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/florete/florete/internal/strictjson"
)

// These are the names of cookies. The prefix binds them to one host name, to HTTPS and to all paths
// (RFC 6265bis section 4.1.3.2).
const (
	sessionCookie = "__Host-florete-session"
	browserCookie = "__Host-florete-browser" // distinguishes browsers while they sign in
)

// These are the purposes of sealed values. A value for one purpose is not valid for another.
const (
	purposeLogin   = "login"
	purposeSession = "session"
)

// begun is the state of a sign-in until the browser returns from the issuer.
type begun struct {
	Browser  string `json:"b"` // cookie of the browser that began it
	Verifier string `json:"v"` // of PKCE (RFC 7636)
	Nonce    string `json:"n"`
	Target   string `json:"t"` // path to which the browser returns
	Until    int64  `json:"u"` // Unix time
}

// session is the content of a session cookie.
type session struct {
	Subject string   `json:"s"`
	Email   string   `json:"e,omitempty"` // verified by the issuer
	Name    string   `json:"n,omitempty"`
	Groups  []string `json:"g,omitempty"`
	Begun   int64    `json:"b"` // Unix time
	Until   int64    `json:"u"` // Unix time
}

// aead returns the cipher for a purpose. The key depends on the client, the service and the public
// name, so a value of one service or name is not valid for another.
func (s GateSite) aead(purpose string) cipher.AEAD {
	info := fmt.Sprintf("florete gate v1 %q %q %q %q", purpose, s.Client.ID, s.Service, s.Name)
	key, err := hkdf.Key(sha256.New, []byte(s.Client.Secret), nil, info, 32)
	if err != nil {
		panic(err) // the length is valid
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		panic(err)
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		panic(err)
	}
	return aead
}

// seal encrypts and authenticates a value.
func (s GateSite) seal(purpose string, v any) string {
	b := strictjson.Encode(v)
	return base64.RawURLEncoding.EncodeToString(s.aead(purpose).Seal(nil, nil, b, nil))
}

// open decrypts a sealed value. It returns false if this site did not seal the value.
func (s GateSite) open(purpose, text string, v any) bool {
	b, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		return false
	}
	plain, err := s.aead(purpose).Open(nil, nil, b, nil)
	return err == nil && json.Unmarshal(plain, v) == nil
}

// session returns the session of a request, unless it has expired.
func (g *Gate) session(r *http.Request, s GateSite) (in session, ok bool) {
	if s.Client == nil || !s.open(purposeSession, cookieOf(r, sessionCookie), &in) {
		return in, false
	}
	now := g.now()
	return in, now.Unix() < in.Until && now.Before(time.Unix(in.Begun, 0).Add(s.Session))
}

// cookieOf returns the value of a cookie. It is empty if the request has several of that name.
func cookieOf(r *http.Request, name string) string {
	if all := r.CookiesNamed(name); len(all) == 1 {
		return all[0].Value
	}
	return ""
}

// setCookie sets a cookie. Without an age, the cookie ends with the browser. A negative age deletes
// it.
func setCookie(w http.ResponseWriter, name, value string, age time.Duration) {
	seconds := int(age / time.Second)
	if age < 0 {
		seconds = -1
	}
	http.SetCookie(w, &http.Cookie{Name: name, Value: value, Path: "/", MaxAge: seconds, Secure: true, HttpOnly: true, SameSite: http.SameSiteLaxMode})
}

func equalSecrets(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }

// randomName returns a text of 128 random bits or more, of a constant length.
func randomName() string { return rand.Text() }
