package ingress

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/terminal"
)

// DefaultCaddy is the usual path of the Unix socket of Caddy's admin API.
const DefaultCaddy = "/run/caddy/admin.sock"

// Caddy configures a Caddy server that serves only the public names of the cluster. Caddy's admin
// API has no authentication and shows the whole configuration, so it must be on a Unix socket that
// only Caddy's account can use. The configuration refers to the files of private keys and does not
// contain the keys.
type Caddy struct {
	Admin       string // path of the socket of the admin API, see DefaultCaddy
	Keys        string // directory for certificates and keys while Caddy loads them; created if missing
	HTTP, HTTPS string // addresses to listen on: a port, or address:port
}

type object = map[string]any

// Validate returns an error unless the admin API is configured as the path of a Unix socket.
func (c *Caddy) Validate() error {
	if filepath.IsAbs(c.Admin) {
		return nil
	}
	return fmt.Errorf("--caddy %q: every account of this host may use an admin API on TCP, want the path of a Unix socket: start Caddy with "+
		"{\"admin\": {\"listen\": \"unix/%[2]s\"}}, in a Caddyfile { admin unix/%[2]s }, and give --caddy %[2]s", c.Admin, DefaultCaddy)
}

// account returns the uid of Caddy, which is the owner of its socket. It returns an error if
// another account can write to the socket.
func (c *Caddy) account() (uid int, err error) {
	if err := c.Validate(); err != nil {
		return 0, err
	}
	info, err := os.Lstat(c.Admin)
	if err != nil {
		return 0, fmt.Errorf("caddy: %w: is it running with {\"admin\": {\"listen\": \"unix/%s\"}}?", err, c.Admin)
	}
	owner, ok := info.Sys().(*syscall.Stat_t)
	switch mode := info.Mode(); {
	case !ok || mode.Type() != os.ModeSocket:
		return 0, fmt.Errorf("caddy: %s is no Unix socket, want that of its admin API", c.Admin)
	case mode.Perm()&0o022 != 0:
		return 0, fmt.Errorf("caddy: %s has mode %04o, so other accounts may use the admin API, want 0600: start Caddy with UMask=0077", c.Admin, mode.Perm())
	}
	return int(owner.Uid), nil
}

// Apply loads the configuration for the given sites into Caddy, unless Caddy already has it. Caddy
// loses its configuration when it restarts. If Caddy rejects the new configuration, Apply returns
// an error, and Caddy keeps the old one.
func (c *Caddy) Apply(ctx context.Context, s Sites) (changed bool, err error) {
	uid, err := c.account()
	if err != nil {
		return false, err
	}
	config, err := c.render(s)
	if err != nil {
		return false, err
	}
	b, err := json.Marshal(config)
	if err != nil {
		return false, err
	}
	mark := fmt.Sprintf("florete-%x", sha256.Sum256(b))[:32]
	has, err := c.call(ctx, http.MethodGet, "/config/apps/http/servers/florete/logs/default_logger_name", nil)
	if err == nil && strings.TrimSpace(string(has)) == `"`+mark+`"` {
		return false, nil
	}
	config["apps"].(object)["http"].(object)["servers"].(object)["florete"].(object)["logs"] = object{"default_logger_name": mark}
	if b, err = json.Marshal(config); err != nil {
		return false, err
	}
	if err = c.hand(s, uid); err == nil {
		_, err = c.call(ctx, http.MethodPost, "/load", b)
	}
	if err != nil {
		err = fmt.Errorf("caddy: %w", err)
	}
	// The files can be removed, because Caddy keeps the loaded keys in memory.
	return err == nil, errors.Join(err, os.RemoveAll(c.handed()))
}

// handed returns the path of the directory through which this process passes certificates and keys
// to Caddy. Only Caddy's account can read the directory.
func (c *Caddy) handed() string { return filepath.Join(c.Keys, "caddy") }

// files returns the paths of a site's certificate and key in the directory that Caddy reads.
func (c *Caddy) files(s Site) (certificate, key string) {
	name := filepath.Join(c.handed(), s.Digest)
	return name + ".pem", name + ".key"
}

// hand writes the certificates and keys of the sites for Caddy. The argument uid is the account of
// Caddy, which becomes the owner of the directory once the directory is complete.
func (c *Caddy) hand(s Sites, uid int) error {
	if err := os.MkdirAll(c.Keys, 0o711); err != nil {
		return err
	}
	dir := c.handed()
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	for _, site := range s.All {
		if site.Certificate == "" {
			continue
		}
		certificate, key := c.files(site)
		if _, err := os.Lstat(key); err == nil {
			continue // another name uses the same certificate
		}
		for to, from := range map[string]string{certificate: site.Certificate, key: site.Key} {
			b, err := os.ReadFile(from)
			if err == nil {
				err = os.WriteFile(to, b, 0o400)
			}
			if err == nil {
				err = os.Chown(to, uid, -1)
			}
			if err != nil {
				return err
			}
		}
	}
	return os.Chown(dir, uid, -1)
}

func (c *Caddy) call(ctx context.Context, method, path string, body []byte) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, "http://caddy"+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Host = "/" // sent as an empty host, the only one that Caddy accepts on a Unix socket
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", c.Admin)
	}}}
	resp, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(io.LimitReader(resp.Body, 1<<10))
	if err == nil && resp.StatusCode != http.StatusOK {
		err = errors.New(resp.Status + ": " + terminal.Text(strings.TrimSpace(string(b))))
	}
	return b, err
}

func (c *Caddy) render(s Sites) (object, error) {
	onHTTP, err := listening(s, c.HTTP)
	if err != nil {
		return nil, err
	}
	https, err := listening(s, c.HTTPS)
	if err != nil {
		return nil, err
	}
	// Targets without a leading slash would become part of the host name of a redirect.
	plain := []object{{"match": only(target, "^/", false), "handle": answer(http.StatusBadRequest), "terminal": true}}
	var routes, pairs []object
	var names []string
	if s.Thumbprint != "" {
		plain = append(plain, object{
			"match":  []object{{"host": namesOf(s), "path_regexp": object{"name": "acme", "pattern": `^/\.well-known/acme-challenge/([A-Za-z0-9_-]+)$`}}},
			"handle": []object{{"handler": "static_response", "status_code": 200, "body": "{http.regexp.acme.1}." + s.Thumbprint}}, "terminal": true,
		})
	}
	for _, site := range s.All {
		host := []object{{"host": []string{site.Name}}}
		if site.Certificate == "" {
			plain = append(plain, object{"match": host, "handle": []object{{"handler": "static_response", "status_code": 503}}, "terminal": true})
			continue
		}
		certificate, key := c.files(site)
		names = append(names, site.Name)
		pairs = append(pairs, object{"certificate": certificate, "key": key})
		plain = append(plain, object{"match": host, "handle": []object{redirectTo(caddyHost(site))}, "terminal": true})
		routes = append(routes, object{"match": host, "handle": []object{{"handler": "subroute", "routes": site.caddy(s.Gate)}}, "terminal": true})
	}
	unknown := object{"handle": []object{{
		"handler": "static_response", "status_code": 404, "headers": object{"Content-Type": []string{"text/plain"}}, "body": unknownName,
	}}}
	refuse := object{"handle": []object{{"handler": "static_response", "status_code": 421}}}
	none := object{"disable": true}
	secure := object{"listen": https, "automatic_https": none, "routes": append(routes, refuse)}
	if len(names) > 0 {
		secure["tls_connection_policies"] = []object{{"match": object{"sni": names}}}
	}
	servers := object{
		"florete-http": object{"listen": onHTTP, "automatic_https": none, "routes": append(plain, unknown)},
		"florete":      secure,
	}
	apps := object{"http": object{"servers": servers}}
	if len(pairs) > 0 {
		apps["tls"] = object{"certificates": object{"load_files": pairs}}
	}
	return object{"admin": object{"listen": "unix/" + c.Admin, "config": object{"persist": false}}, "apps": apps}, nil
}

// caddyDeletes lists the request headers that Caddy removes, because a client could set them to
// deceive the service. Names with an underscore or a dot are included, because a CGI program takes
// X_Real_IP for X-Real-IP. nginx drops such names by default.
var caddyDeletes = append([]string{"*_*", "*.*", "X-Forwarded-*", "Http2-Settings"}, strangersClaims...)

// caddyHost returns the host name to which a visitor is sent from HTTP, in the syntax of Caddy.
func caddyHost(s Site) string {
	switch {
	case s.Redirect != "":
		return s.Redirect
	case document.IsWildcard(s.Name):
		return "{http.request.host}"
	}
	return s.Name
}

func redirectTo(host string) object {
	return object{"handler": "static_response", "status_code": 308, "headers": object{"Location": []string{"https://" + host + "{http.request.uri}"}}}
}

func answer(status int) []object {
	return []object{{"handler": "static_response", "status_code": status}}
}

// These are values of a request in the syntax of Caddy.
const (
	target  = "http.request.uri"
	upgrade = "http.request.header.Upgrade"
	length  = "http.request.header.Content-Length"
)

// only returns the condition that a regular expression of CEL does or does not match a value of a
// request, without regard to case.
func only(value, pattern string, matches bool) []object {
	not := map[bool]string{false: "!"}[matches]
	return []object{{"expression": fmt.Sprintf(`%s{%s}.matches(r'(?i)%s')`, not, value, pattern)}}
}

// caddy returns the routes of a site for Caddy. Caddy compares the decoded path with the routes,
// but passes on the path as it was received. The routes therefore first refuse paths that a service
// could decode differently.
//
// The routes do not pass on an upgrade to HTTP/2 in clear text. After such an upgrade, a client
// could send requests to the service that the proxy does not check.
func (s Site) caddy(socket string) (routes []object) {
	add := func(match []object, handle ...object) {
		r := object{"handle": handle}
		if match != nil {
			r["match"] = match
		}
		routes = append(routes, r)
	}
	if s.Rules.HSTS > 0 {
		age := []string{fmt.Sprintf("max-age=%d", s.Rules.HSTS)}
		add(nil, object{"handler": "headers", "response": object{"deferred": true, "set": object{"Strict-Transport-Security": age}}})
	}
	add(only(target, "^/", false), answer(http.StatusBadRequest)...)
	if s.Redirect != "" {
		add(nil, redirectTo(s.Redirect))
		return routes
	}
	// After this handler, the proxy adds its own X-Forwarded-For, X-Forwarded-Host and
	// X-Forwarded-Proto.
	add(nil, object{"handler": "headers", "request": object{"delete": caddyDeletes, "set": object{"X-Real-Ip": []string{"{http.request.remote.host}"}}}})
	noUpgrade := object{"handler": "headers", "request": object{"delete": []string{"Upgrade"}}}
	if s.Rules.Restricts() {
		add([]object{{"method": []string{http.MethodConnect}}}, answer(http.StatusMethodNotAllowed)...)
		add(only(target, ambiguous, true), answer(http.StatusBadRequest)...)
		add(only(upgrade, "^websocket$", false), noUpgrade)
	} else {
		add(only(upgrade, "h2c|http|tls", true), noUpgrade)
	}
	// Caddy removes the headers that Connection names, and would remove those that are set here.
	upgrades := object{"header": object{"Upgrade": []string{"*"}}}
	add([]object{upgrades}, object{"handler": "headers", "request": object{"set": object{"Connection": []string{"Upgrade"}}}})
	add([]object{{"not": []object{upgrades}}}, object{"handler": "headers", "request": object{"delete": []string{"Connection"}}})
	if s.Rules.MaxBody > 0 {
		most := s.Rules.MaxBody << 20
		add([]object{{"expression": fmt.Sprintf(`{%s}.matches('^[0-9]{1,18}$') && int({%[1]s}) > %d`, length, most)}}, answer(http.StatusRequestEntityTooLarge)...)
		add(nil, object{"handler": "request_body", "max_size": most})
	}
	if s.Gated {
		for _, e := range s.GateEntries() {
			handle := limited(e.Decision.Deny, e.Decision.From, s.ask(socket, e.Path+"?{http.request.uri.query}"))
			routes = append(routes, object{"match": []object{{"path": []string{e.Path}}}, "handle": handle, "terminal": true})
		}
	}
	for _, r := range s.Routes() {
		pass := []object{s.proxy(r.Upstream)}
		if s.Gated {
			pass = []object{s.admit(socket), s.proxy(r.Upstream)}
		}
		route := object{"handle": limited(r.Deny, r.From, pass...), "terminal": true}
		if r.Pattern != "" {
			route["match"] = []object{{"path_regexp": object{"pattern": "(?i)" + r.Pattern}}}
		}
		routes = append(routes, route)
	}
	return routes
}

// limited returns the handlers for requests that rules deny or limit to networks.
func limited(deny bool, from []netip.Prefix, pass ...object) []object {
	if deny {
		return answer(http.StatusForbidden)
	}
	if len(from) == 0 {
		return pass
	}
	denied := object{"match": []object{{"not": []object{{"remote_ip": object{"ranges": from}}}}}, "handle": answer(http.StatusForbidden)}
	return append([]object{{"handler": "subroute", "routes": []object{denied}}}, pass...)
}

// ask returns the handler that passes a request to the gate, without its body.
func (s Site) ask(socket, uri string) object {
	return object{
		"handler": "reverse_proxy", "upstreams": []object{{"dial": "unix/" + socket}},
		"rewrite": object{"method": http.MethodGet, "uri": uri},
		"headers": object{"request": object{
			"delete": []string{"Upgrade", "Connection"},
			"set": object{
				"Host": []string{s.Name}, TargetHeader: []string{"{http.request.orig_uri}"}, MethodHeader: []string{"{http.request.orig_method}"}, UpgradeHeader: []string{"{http.request.header.Upgrade}"},
			},
		}},
	}
}

// admit returns the handler that asks the gate whether a request has a session. The answer of the
// gate goes to the browser, unless the request has one. The next handler then passes it on.
func (s Site) admit(socket string) object {
	set := object{}
	for _, h := range gateHeaders {
		set[h.Request] = []string{"{http.reverse_proxy.header." + h.Answer + "}"}
	}
	h := s.ask(socket, EnterPath)
	h["handle_response"] = []object{{
		"match":  object{"status_code": []int{http.StatusNoContent}},
		"routes": []object{{"handle": []object{{"handler": "headers", "request": object{"set": set}}}}},
	}}
	return h
}

// proxy returns the handler that passes requests to a listener.
func (s Site) proxy(to netip.AddrPort) object {
	transport := object{"protocol": "http"}
	if s.GRPC {
		// Caddy has no time limit for HTTP/2 in clear text: it ignores both timeouts, or applies them
		// to a connection that other calls use as well.
		transport["versions"] = []string{"h2c", "2"}
	} else if s.Rules.Timeout > 0 {
		wait := fmt.Sprintf("%ds", s.Rules.Timeout)
		transport["read_timeout"], transport["write_timeout"] = wait, wait
	}
	return object{"handler": "reverse_proxy", "upstreams": []object{{"dial": to.String()}}, "flush_interval": -1, "transport": transport}
}

func namesOf(s Sites) (names []string) {
	for _, site := range s.All {
		names = append(names, site.Name)
	}
	return names
}

// listening returns the addresses that Caddy listens on. A port without an address stands for all
// addresses.
func listening(s Sites, given string) ([]string, error) {
	all, err := s.at(given)
	if len(all) == 1 && isPort(all[0]) {
		all = []string{":" + given}
	}
	return all, err
}
