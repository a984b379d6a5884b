package ingress

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/florete/florete"
	"github.com/florete/florete/providers/printable"
)

// DefaultCaddy is where Caddy's admin API is.
const DefaultCaddy = "localhost:2019"

// Caddy is a Caddy that serves the public names alone: its configuration is ours, and nothing of
// it, such as keys, is written to disk.
type Caddy struct {
	Admin       string // DefaultCaddy
	HTTP, HTTPS string // what it listens on: a port, or address:port
}

type object = map[string]any

// Apply loads the configuration, where Caddy has another, such as none after a restart. Caddy
// keeps the former one where it does not accept this.
func (c *Caddy) Apply(ctx context.Context, s Sites) (changed bool, err error) {
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
	if _, err := c.call(ctx, http.MethodPost, "/load", b); err != nil {
		return false, fmt.Errorf("caddy: %w", err)
	}
	return true, nil
}

func (c *Caddy) call(ctx context.Context, method, path string, body []byte) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, "http://"+c.Admin+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(io.LimitReader(resp.Body, 1<<10))
	if err == nil && resp.StatusCode != http.StatusOK {
		err = errors.New(resp.Status + ": " + printable.Text(strings.TrimSpace(string(b))))
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
		crt, err := os.ReadFile(site.Certificate)
		if err != nil {
			return nil, err
		}
		key, err := os.ReadFile(site.Key)
		if err != nil {
			return nil, err
		}
		names = append(names, site.Name)
		pairs = append(pairs, object{"certificate": string(crt), "key": string(key)})
		plain = append(plain, object{"match": host, "handle": []object{{
			"handler": "static_response", "status_code": 308, "headers": object{"Location": []string{"https://" + caddyHost(site.Name) + "{http.request.uri}"}},
		}}, "terminal": true})
		proxy := object{"handler": "reverse_proxy", "upstreams": []object{{"dial": site.Upstream.String()}}, "flush_interval": -1}
		if site.GRPC {
			proxy["transport"] = object{"protocol": "http", "versions": []string{"h2c", "2"}}
		}
		routes = append(routes, object{"match": host, "handle": []object{proxy}, "terminal": true})
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
		apps["tls"] = object{"certificates": object{"load_pem": pairs}}
	}
	return object{"admin": object{"listen": c.Admin, "config": object{"persist": false}}, "apps": apps}, nil
}

// caddyHost is the name that a request is for.
func caddyHost(name string) string {
	if florete.IsWildcard(name) {
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

// listening is where Caddy listens: a port is that of all addresses.
func listening(s Sites, given string) ([]string, error) {
	all, err := s.at(given)
	if len(all) == 1 && isPort(all[0]) {
		all = []string{":" + given}
	}
	return all, err
}
