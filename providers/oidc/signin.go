package oidc

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/dexidp/dex/storage"

	"github.com/florete/florete/providers/sealedstore"
)

const (
	browserCookie = "florete-browser" // names the browser
	knownCookie   = "florete-known"   // marks an account that signed in with the browser
	cookiesLive   = 90 * 24 * time.Hour
)

// signIn is a sign-in during one HTTP request.
type signIn struct {
	from      string // network address
	browser   string
	connector string               // the connector; set when the sign-in continues
	request   *storage.AuthRequest // nil before it is begun or found, and once it is finished
	sealed    string               // sealed form of request for URLs, if this HTTP request began it
	signed    func()               // called when the password was right, before anything is sent
	instead   *instead             // page that is shown instead of Dex's; nil for none
	outside   string               // client whose groups do not include the person; empty for none
	account   string               // the person's account
}

type signInKey struct{}

func signInOf(ctx context.Context) *signIn {
	in, _ := ctx.Value(signInKey{}).(*signIn)
	return in
}

// signIns is a storage that stores nothing about a sign-in until the password was right. Beginning
// many sign-ins therefore uses no space. The whole sign-in is in the URL of its page, sealed with a
// key of the browser that began it. No other browser can complete the sign-in.
type signIns struct {
	storage.Storage
	cookies
}

func (s signIns) CreateAuthRequest(ctx context.Context, a storage.AuthRequest) error {
	in := signInOf(ctx)
	if in == nil {
		return errors.New("oidc: a sign-in without a browser")
	}
	in.request = &a
	return s.seal(in)
}

// seal sets the sealed form of a sign-in, for use in URLs.
func (s signIns) seal(in *signIn) error {
	plain, err := json.Marshal(in.request)
	if err != nil {
		return err
	}
	in.sealed = base64.RawURLEncoding.EncodeToString(s.sealing(in.browser).Seal("sign-in", plain))
	return nil
}

func (s signIns) GetAuthRequest(ctx context.Context, id string) (storage.AuthRequest, error) {
	in := signInOf(ctx)
	if in == nil {
		return storage.AuthRequest{}, storage.ErrNotFound
	}
	if in.request == nil || in.request.ID != id {
		a, ok := s.open(id, in.browser)
		if !ok {
			return a, storage.ErrNotFound
		}
		in.request = &a
	}
	return *in.request, nil
}

// open returns the sign-in that a browser began. The result ok is false if the sign-in is too old
// or belongs to another browser.
func (s signIns) open(sealed, browser string) (a storage.AuthRequest, ok bool) {
	b, err := base64.RawURLEncoding.DecodeString(sealed)
	if err != nil || browser == "" {
		return a, false
	}
	plain, err := s.sealing(browser).Open("sign-in", b)
	if err != nil || json.Unmarshal(plain, &a) != nil {
		return a, false
	}
	a.ID = sealed
	return a, time.Now().Before(a.Expiry)
}

func (s signIns) UpdateAuthRequest(ctx context.Context, id string, change func(storage.AuthRequest) (storage.AuthRequest, error)) error {
	a, err := s.GetAuthRequest(ctx, id)
	if err != nil {
		return err
	}
	if a, err = change(a); err != nil {
		return err
	}
	in := signInOf(ctx)
	in.request = &a
	if a.LoggedIn {
		in.signed()
	}
	if in.sealed != "" {
		return s.seal(in) // a connector noted something as it began
	}
	return nil
}

func (s signIns) DeleteAuthRequest(ctx context.Context, id string) error {
	if _, err := s.GetAuthRequest(ctx, id); err != nil {
		return err
	}
	signInOf(ctx).request = nil
	return nil
}

// cookies recognizes browsers by cookies. A cookie does not prove who uses the browser.
type cookies struct {
	key   *sealedstore.Key
	https bool
}

func (c cookies) name(of string) string {
	if c.https {
		return "__Host-" + of
	}
	return of
}

func (c cookies) set(w http.ResponseWriter, of, value string) {
	http.SetCookie(w, &http.Cookie{
		Name: c.name(of), Value: value, Path: "/", MaxAge: int(cookiesLive.Seconds()),
		HttpOnly: true, Secure: c.https, SameSite: http.SameSiteLaxMode, // Strict would not come along from the service
	})
}

// browser returns the name of the browser that sent a request. It returns "" for a new browser.
func (c cookies) browser(r *http.Request) string {
	k, err := r.Cookie(c.name(browserCookie))
	if err != nil || len(k.Value) != len(rand.Text()) || strings.Trim(k.Value, "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567") != "" {
		return ""
	}
	return k.Value
}

// sealing returns the key that seals the sign-ins of a browser.
func (c cookies) sealing(browser string) *sealedstore.Key {
	k, err := sealedstore.New(c.key.Derive("florete oidc sign-in v1\n"+browser, 32))
	if err != nil {
		panic(err) // of that length
	}
	return k
}

// known reports whether an account was the last account that signed in with the browser.
func (c cookies) known(r *http.Request, browser, account string) bool {
	k, err := r.Cookie(c.name(knownCookie))
	return err == nil && browser != "" && hmac.Equal([]byte(k.Value), []byte(c.mark(browser, account)))
}

// signedIn records in cookies that an account signed in with the browser.
func (c cookies) signedIn(w http.ResponseWriter, browser, account string) {
	c.set(w, browserCookie, browser)
	c.set(w, knownCookie, c.mark(browser, account))
}

func (c cookies) mark(browser, account string) string {
	h := hmac.New(sha256.New, c.key.Derive("florete oidc known browser v1", 32))
	h.Write([]byte(browser + "\n" + account))
	return base64.RawURLEncoding.EncodeToString(h.Sum(nil))
}
