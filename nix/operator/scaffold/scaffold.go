// Package scaffold writes the files of a new cluster, and the files of hosts, services and users
// that are added to a cluster. The files form a folder that nix/language/folder.nix reads.
package scaffold

import (
	"bytes"
	"embed"
	"fmt"
	"io/fs"
	"strings"
	"text/template"
)

//go:embed cluster
var templates embed.FS

// File is a file in the folder of a cluster.
type File struct {
	Path string // relative to the cluster's directory, with slashes
	Text string
}

// Cluster describes a new cluster without hosts. Init writes its files.
type Cluster struct {
	Name        string
	TrustDomain string
	SigningKey  string // public half, Nix format
	Root        string // certificate, PEM
	Florete     string // flake reference of the input
	PathSalt    string // random text
}

// SigningKeyName returns the name of the signing key, which is the text before the colon in
// SigningKey.
func (c Cluster) SigningKeyName() string {
	name, _, _ := strings.Cut(c.SigningKey, ":")
	return name
}

// Files returns all files of a new cluster except flake.lock, which Nix writes.
func (c Cluster) Files() (files []File, err error) {
	parsed, err := template.New("").Funcs(template.FuncMap{"string": quote}).ParseFS(templates, "cluster/*")
	if err != nil {
		return nil, err
	}
	entries, err := fs.ReadDir(templates, "cluster")
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		var text bytes.Buffer
		if err := parsed.ExecuteTemplate(&text, e.Name(), c); err != nil {
			return nil, err
		}
		path := strings.TrimSuffix(e.Name(), ".tmpl")
		if path == "gitignore" { // embed leaves out names that begin with a dot
			path = ".gitignore"
		}
		files = append(files, File{path, text.String()})
	}
	return append(files, File{"ca.crt", c.Root}), nil
}

// Host is a host to add to a cluster.
type Host struct {
	Name, Group string
	Addresses   []string
	SSHHostKey  string // empty if it joins with a token
	Device      bool
	Users       []string // users who may act on it
}

// File returns the file that declares the host.
func (h Host) File() File {
	kind := ""
	if h.Device {
		kind = "device"
	}
	address := any(h.Addresses)
	if len(h.Addresses) == 1 {
		address = h.Addresses[0]
	}
	dir := "hosts/"
	if h.Group != "" {
		dir += h.Group + "/"
	}
	return File{dir + h.Name + ".nix", set(attr{"kind", kind}, attr{"address", address}, attr{"sshHostKey", h.SSHHostKey}, attr{"users", h.Users})}
}

// Providers returns a file of the topology that makes one host the provider of the kinds "cert" and
// "config". Every cluster needs a provider of these.
func Providers(host string) File {
	return File{"providers.nix", set(attr{"cert.hosts", []string{host}}, attr{"config.hosts", []string{host}})}
}

// Service is a service to add to a cluster.
type Service struct {
	Name, Host       string
	Port, ListenPort int
	User             string // account as which it runs; empty for root
	Roles            []string
}

// File returns the file that declares the service.
func (s Service) File() File {
	return File{"services/" + s.Name + ".nix", set(attr{"host", s.Host}, attr{"port", s.Port}, attr{"listenPort", s.ListenPort}, attr{"user", s.User}, attr{"roles", s.Roles})}
}

// Role returns a file of the topology that declares a role. The role gives access to one service.
func Role(name, service string) File {
	return File{"roles/" + name + ".nix", set(attr{"services", []string{service}})}
}

// User is a user to add to a cluster.
type User struct {
	Name  string
	Roles []string
}

// File returns the file that declares the user.
func (u User) File() File { return File{"users/" + u.Name + ".nix", set(attr{"roles", u.Roles})} }

// attr is an attribute with a string, a number or a list of strings. It is left out if it is empty.
type attr struct {
	name  string
	value any
}

// set writes attributes in the format of nixfmt.
func set(attrs ...attr) string {
	var b strings.Builder
	b.WriteString("{\n")
	for _, a := range attrs {
		switch v := a.value.(type) {
		case string:
			if v != "" {
				fmt.Fprintf(&b, "  %s = %s;\n", a.name, quote(v))
			}
		case int:
			if v != 0 {
				fmt.Fprintf(&b, "  %s = %d;\n", a.name, v)
			}
		case []string:
			if len(v) == 1 {
				fmt.Fprintf(&b, "  %s = [ %s ];\n", a.name, quote(v[0]))
			} else if len(v) > 1 {
				fmt.Fprintf(&b, "  %s = [\n", a.name)
				for _, s := range v {
					fmt.Fprintf(&b, "    %s\n", quote(s))
				}
				b.WriteString("  ];\n")
			}
		}
	}
	b.WriteString("}\n")
	return b.String()
}

// quote writes a Nix string.
func quote(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, `$`, `\$`, "\n", `\n`).Replace(s) + `"`
}
