package httpreply

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"strings"
)

// OwnPage returns an error, and the status to answer with, where the request is of a page in a browser
// that is not the server's own: of one that had its own name lead here (DNS rebinding), or of one
// that only sends requests. own reports whether the server has a name, in lower case and without
// a port; want is that name in words.
func OwnPage(r *http.Request, own func(name string) bool, want string) (status int, err error) {
	host := url.URL{Host: r.Host}
	name := hostname(&host)
	if !own(name) {
		return http.StatusMisdirectedRequest, fmt.Errorf("header Host %.100q, want %s: call it by that name", r.Host, want)
	}
	if site := r.Header.Get("Sec-Fetch-Site"); site != "" && site != "same-origin" && site != "none" {
		return http.StatusForbidden, fmt.Errorf("header Sec-Fetch-Site %.100q, want a page of %s", site, want)
	}
	for _, origin := range r.Header.Values("Origin") {
		u, err := url.Parse(origin)
		if err != nil || u.Scheme != "http" || hostname(u) != name || cmp.Or(u.Port(), "80") != cmp.Or(host.Port(), "80") {
			return http.StatusForbidden, fmt.Errorf("header Origin %.100q, want a page of %s", origin, want)
		}
	}
	return http.StatusOK, nil
}

// hostname returns a host as names are written.
func hostname(u *url.URL) string { return strings.TrimSuffix(strings.ToLower(u.Hostname()), ".") }
