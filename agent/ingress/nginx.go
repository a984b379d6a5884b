package ingress

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"text/template"
	"time"

	"github.com/florete/florete/internal/atomicfile"
	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/terminal"
)

// These constants are the defaults for nginx. DefaultNginxFile is a path that Debian's nginx
// includes in its configuration. DefaultHTTP and DefaultHTTPS are the ports for public names.
const (
	DefaultNginxFile = "/etc/nginx/conf.d/florete.conf"
	DefaultHTTP      = "80"
	DefaultHTTPS     = "443"
)

// nginxTime is the time limit of one run of nginx, which tests or reloads a configuration.
const nginxTime = 30 * time.Second

// Nginx configures an nginx server. It writes a file that nginx includes in its http block.
type Nginx struct {
	File        string   // path of the file that nginx includes, see DefaultNginxFile
	Command     []string // program with the arguments that select its configuration: { "nginx" }
	HTTP, HTTPS string   // addresses to listen on: a port, or address:port

	behind bool // nginx has not yet loaded the newest file
}

// Apply writes the configuration file for the given sites, lets nginx test it, and reloads nginx.
// If the file is already up to date, it changes nothing. If nginx rejects the file, Apply restores
// the old one and returns an error.
func (n *Nginx) Apply(ctx context.Context, s Sites) (changed bool, err error) {
	text, err := n.render(s)
	if err != nil {
		return false, err
	}
	before, err := os.ReadFile(n.File)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, err
	}
	none := err != nil
	if !bytes.Equal(before, text) {
		if err := atomicfile.File(n.File, text, 0o644); err != nil {
			return false, err
		}
		if err := n.run(ctx, "-t", "-q"); err != nil {
			var back error
			if none {
				back = os.Remove(n.File)
			} else {
				back = atomicfile.File(n.File, before, 0o644)
			}
			return false, errors.Join(fmt.Errorf("nginx does not accept %s, which is as it was before: %w", n.File, err), back)
		}
		n.behind, changed = true, true
	}
	if n.behind {
		if err := n.run(ctx, "-s", "reload"); err != nil {
			return changed, fmt.Errorf("nginx does not reload %s, is it running? %w", n.File, err)
		}
		n.behind = false
	}
	return changed, nil
}

func (n *Nginx) run(ctx context.Context, args ...string) error {
	ctx, cancel := context.WithTimeout(ctx, nginxTime)
	defer cancel()
	args = append(append([]string{}, n.Command[1:]...), args...)
	cmd := exec.CommandContext(ctx, n.Command[0], args...)
	cmd.WaitDelay = time.Second
	out, err := cmd.CombinedOutput()
	if err != nil {
		const most = 1 << 10
		return fmt.Errorf("%w: %s", err, terminal.Text(strings.TrimSpace(string(out[:min(len(out), most)]))))
	}
	return nil
}

func (n *Nginx) render(s Sites) ([]byte, error) {
	http, err := listens(s, n.HTTP)
	if err != nil {
		return nil, err
	}
	https, err := listens(s, n.HTTPS)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	err = nginxFile.Execute(&b, struct {
		Sites
		HTTP, HTTPS []string
	}{s, http, https})
	return b.Bytes(), err
}

// listens returns the addresses that nginx listens on. A port without an address stands for all
// IPv4 and IPv6 addresses.
func listens(s Sites, given string) ([]string, error) {
	all, err := s.at(given)
	if len(all) == 1 && isPort(all[0]) {
		all = append(all, "[::]:"+given)
	}
	return all, err
}

// ServerName returns the argument of the nginx directive server_name for a site. A wildcard becomes
// a regular expression that matches a single label, as a wildcard certificate does. A wildcard of
// nginx itself would match several labels.
func (s Site) ServerName() string {
	if above, wild := strings.CutPrefix(s.Name, "*."); wild {
		return "~^[^.]+\\." + regexp.QuoteMeta(above) + "$"
	}
	return s.Name
}

// Host returns the host name to which a visitor is redirected from HTTP to HTTPS, in the syntax of
// nginx. For a wildcard, it is the variable $host.
func (s Site) Host() string {
	if s.Redirect != "" {
		return s.Redirect
	}
	if document.IsWildcard(s.Name) {
		return "$host"
	}
	return s.Name
}

// passed is the data of the template for a location that leads to a service.
type passed struct {
	Site
	Upstream netip.AddrPort
}

// nginxFuncs are the functions of the template.
var nginxFuncs = template.FuncMap{
	"checkPath":     func() string { return CheckPath },
	"startPath":     func() string { return StartPath },
	"targetHeader":  func() string { return TargetHeader },
	"methodHeader":  func() string { return MethodHeader },
	"upgradeHeader": func() string { return UpgradeHeader },
	"gateHeaders":   func() any { return gateHeaders },
	"variable":      func(header string) string { return strings.ReplaceAll(strings.ToLower(header), "-", "_") },
	"ambiguous":     func() string { return ambiguous },
	"unknownName":   func() string { return strings.TrimSpace(unknownName) },
	// A gated site sets the headers that describe the person.
	"claims": func(gated bool) []string {
		return slices.DeleteFunc(slices.Clone(strangersClaims), func(name string) bool { return gated && tellsPerson(name) })
	},
	"pass": func(s Site, at netip.AddrPort) passed { return passed{s, at} },
}

// nginxFile is the template of the configuration file. The names, addresses and paths in it need no
// quoting, because the compiler and the check of the manifest permit only harmless characters.
//
// nginx compares the decoded path with the locations, and passes the request target on as it came.
// Targets that a service could decode to another path are refused before.
//
// With an upgrade to HTTP/2 in clear text, a client would speak to the service past the proxy, so
// such an upgrade is not passed on.
var nginxFile = template.Must(template.New("nginx").Funcs(nginxFuncs).Parse(`# Public names of the cluster, kept by flor ingress: edits are lost.
map $http_upgrade $florete_upgrade { default $http_upgrade; "~*h2c|http|tls" ''; }
map $florete_upgrade $florete_connection { default upgrade; '' ''; }
map $http_upgrade $florete_websocket { default ''; "~*^websocket$" websocket; }
map $florete_websocket $florete_websocket_connection { default upgrade; '' ''; }

server {
{{- range .HTTP}}
	listen {{.}} default_server;
{{- end}}
	server_name _;
	server_tokens off;
	default_type text/plain;
	return 404 "{{unknownName}}\n";
}
server {
{{- range .HTTPS}}
	listen {{.}} ssl http2 default_server;
{{- end}}
	server_name _;
	server_tokens off;
	underscores_in_headers off;
	ignore_invalid_headers on;
	ssl_reject_handshake on;
	return 421;
}
{{- range $s := .All}}

server {
{{- range $.HTTP}}
	listen {{.}};
{{- end}}
	server_name {{.ServerName}};
	server_tokens off;
{{- if $.Thumbprint}}
	location ~ "^/\.well-known/acme-challenge/([A-Za-z0-9_-]+)$" {
		default_type text/plain;
		return 200 "$1.{{$.Thumbprint}}";
	}
{{- end}}
{{- if .Certificate}}
	location / { return 308 https://{{.Host}}$request_uri; }
{{- else}}
	location / { return 503; }
{{- end}}
}
{{- if .Certificate}}
server {
{{- range $.HTTPS}}
	listen {{.}} ssl http2;
{{- end}}
	server_name {{.ServerName}};
	server_tokens off;
	# {{.Digest}}
	ssl_certificate {{.Certificate}};
	ssl_certificate_key {{.Key}};
	ssl_protocols TLSv1.2 TLSv1.3;
	ssl_session_tickets off;
	underscores_in_headers off;
	ignore_invalid_headers on;
	client_max_body_size {{if .Rules.MaxBody}}{{.Rules.MaxBody}}m{{else}}0{{end}};
{{- if .Rules.HSTS}}
	add_header Strict-Transport-Security "max-age={{.Rules.HSTS}}" always;
{{- end}}
{{- if .Redirect}}
	location / { return 308 https://{{.Redirect}}$request_uri; }
{{- else}}
{{- if .Rules.Restricts}}
	if ($request_uri ~* "{{ambiguous}}") { return 400; }
{{- end}}
{{- if .Gated}}
	location = /.florete/check {
		internal;
		{{- template "ask" $s}}
		proxy_pass http://unix:{{$.Gate}}:{{checkPath}};
	}
	location = /.florete/start {
		internal;
		{{- template "ask" $s}}
		proxy_pass http://unix:{{$.Gate}}:{{startPath}};
	}
{{- range .GateEntries}}
	location = {{.Path}} {
{{- template "limit" .Decision}}
{{- if not .Decision.Deny}}
		set $florete_method $request_method;
		{{- template "ask" $s}}
		proxy_pass http://unix:{{$.Gate}}:{{.Path}};
{{- end}}
	}
{{- end}}
{{- end}}
{{- range .Routes}}
	location {{if .Pattern}}~* "{{.Pattern}}"{{else}}/{{end}} {
{{- template "limit" .}}
{{- if not .Deny}}
{{- if $s.Gated}}
		set $florete_method $request_method; # an error page has method GET
		auth_request /.florete/check;
		error_page 401 = /.florete/start;
{{- range $i, $h := gateHeaders}}
		auth_request_set $florete_gate_{{$i}} $upstream_http_{{variable $h.Answer}};
{{- end}}
{{- end}}
{{- template "pass" (pass $s .Upstream)}}
{{- end}}
	}
{{- end}}
{{- end}}
}
{{- end}}
{{- end}}

{{- define "limit"}}
{{- if .Deny}}
		return 403;
{{- else}}
{{- range .From}}
		allow {{.}};
{{- end}}
{{- if .From}}
		deny all;
{{- end}}
{{- end}}
{{- end}}

{{- define "ask"}}
		proxy_pass_request_body off;
		proxy_pass_request_headers off;
		proxy_set_header Content-Length "";
		proxy_set_header Host {{.Name}};
		proxy_set_header Cookie $http_cookie;
		proxy_set_header Sec-Fetch-Mode $http_sec_fetch_mode;
		proxy_set_header Sec-Fetch-Site $http_sec_fetch_site;
		proxy_set_header {{targetHeader}} $request_uri;
		proxy_set_header {{methodHeader}} $florete_method;
		proxy_set_header {{upgradeHeader}} $http_upgrade;
		proxy_http_version 1.1;
		proxy_read_timeout 60s;
{{- end}}

{{- define "pass"}}
{{- if .Rules.HSTS}}
		{{if .GRPC}}grpc{{else}}proxy{{end}}_hide_header Strict-Transport-Security;
{{- end}}
{{- if .GRPC}}
		grpc_pass grpc://{{.Upstream}};
		grpc_set_header Host $host;
{{- range claims .Gated}}
		grpc_set_header {{.}} "";
{{- end}}
		grpc_set_header X-Real-IP $remote_addr;
		grpc_set_header X-Forwarded-For $remote_addr;
		grpc_set_header X-Forwarded-Host $host;
		grpc_set_header X-Forwarded-Proto https;
		grpc_read_timeout {{.Seconds}}s;
		grpc_send_timeout {{.Seconds}}s;
{{- else}}
		proxy_pass http://{{.Upstream}};
		proxy_http_version 1.1;
		proxy_set_header Host $host;
{{- if .Rules.Restricts}}
		proxy_set_header Upgrade $florete_websocket;
		proxy_set_header Connection $florete_websocket_connection;
{{- else}}
		proxy_set_header Upgrade $florete_upgrade;
		proxy_set_header Connection $florete_connection;
{{- end}}
		proxy_set_header HTTP2-Settings "";
{{- range claims .Gated}}
		proxy_set_header {{.}} "";
{{- end}}
{{- if .Gated}}
{{- range $i, $h := gateHeaders}}
		proxy_set_header {{$h.Request}} $florete_gate_{{$i}};
{{- end}}
{{- end}}
		proxy_set_header X-Real-IP $remote_addr;
		proxy_set_header X-Forwarded-For $remote_addr;
		proxy_set_header X-Forwarded-Host $host;
		proxy_set_header X-Forwarded-Proto https;
		proxy_request_buffering off;
		proxy_buffering off;
		proxy_read_timeout {{.Seconds}}s;
		proxy_send_timeout {{.Seconds}}s;
{{- end}}
{{- end}}
`))
