package httpreply

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"strings"
)

// OwnPage checks that a request does not come from a foreign web page in a browser. It returns an
// HTTP status code and an error if the request is cross-origin, or if it is for a host name for
// which own returns false (DNS rebinding). Otherwise it returns 200 and nil. The names that own
// receives are in lower case and without a port. The text want describes the right host name in
// errors.
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

// hostname returns the host name in the URL u, in lower case and without a final dot.
func hostname(u *url.URL) string { return strings.TrimSuffix(strings.ToLower(u.Hostname()), ".") }
