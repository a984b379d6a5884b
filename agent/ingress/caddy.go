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

// Caddy configures a Caddy server that serves only the public names. Caddy's admin API has no
// authentication and shows the whole configuration. The API must therefore be on a Unix socket of
// Caddy's own account. The configuration names the files of private keys and does not contain the
// keys.
type Caddy struct {
	Admin       string // path of the socket of the admin API, see DefaultCaddy
	Keys        string // directory for certificates and keys while Caddy loads them; created if missing
	HTTP, HTTPS string // addresses to listen on: a port, or address:port
}

type object = map[string]any

// Validate checks that the admin API is on a Unix socket, and returns an error if it is not.
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

// Apply loads the configuration into Caddy unless Caddy has it already. For example, Caddy has lost
// it after a restart. If Caddy rejects the configuration, Caddy keeps its old one.
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

// handed returns the directory through which certificates and keys are passed to Caddy. Only
// Caddy's account can read it.
func (c *Caddy) handed() string { return filepath.Join(c.Keys, "caddy") }

// files returns the paths of a site's certificate and key in the directory that Caddy reads.
func (c *Caddy) files(s Site) (certificate, key string) {
	name := filepath.Join(c.handed(), s.Digest)
	return name + ".pem", name + ".key"
}

// hand writes certificates and keys for Caddy, whose account has this uid. The account becomes the
// owner of the directory once the directory is complete.
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
	http, err := listening(s, c.HTTP)
	if err != nil {
		return nil, err
	}
	https, err := listening(s, c.HTTPS)
	if err != nil {
		return nil, err
	}
	var plain, routes, pairs []object
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
		plain = append(plain, object{"match": host, "handle": []object{{
			"handler": "static_response", "status_code": 308, "headers": object{"Location": []string{"https://" + caddyHost(site.Name) + "{http.request.uri}"}},
		}}, "terminal": true})
		proxy := object{"handler": "reverse_proxy", "upstreams": []object{{"dial": site.Upstream.String()}}, "flush_interval": -1}
		if site.GRPC {
			proxy["transport"] = object{"protocol": "http", "versions": []string{"h2c", "2"}}
		}
		// After this handler, the proxy adds its own X-Forwarded-For, X-Forwarded-Host and
		// X-Forwarded-Proto.
		words := object{"handler": "headers", "request": object{"delete": caddyDeletes, "set": object{"X-Real-Ip": []string{"{http.request.remote.host}"}}}}
		routes = append(routes, object{"match": host, "handle": []object{words, proxy}, "terminal": true})
	}
	abort := object{"handle": []object{{"handler": "static_response", "abort": true}}}
	refuse := object{"handle": []object{{"handler": "static_response", "status_code": 421}}}
	none := object{"disable": true}
	secure := object{"listen": https, "automatic_https": none, "routes": append(routes, refuse)}
	if len(names) > 0 {
		secure["tls_connection_policies"] = []object{{"match": object{"sni": names}}}
	}
	servers := object{
		"florete-http": object{"listen": http, "automatic_https": none, "routes": append(plain, abort)},
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
var caddyDeletes = append([]string{"*_*", "*.*", "X-Forwarded-*"}, strangersClaims...)

// caddyHost returns the host name of a request to a site, in the syntax of Caddy.
func caddyHost(name string) string {
	if document.IsWildcard(name) {
		return "{http.request.host}"
	}
	return name
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
