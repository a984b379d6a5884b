// Package settings reads the settings file of a provider host: HuJSON, which is
// JSON with comments and trailing commas. Each kind of need has a section and a process
// of its own, which reads no other section.
//
//	{
//	  "policy": "/etc/florete/documents",     // the directory with policy.json
//	  "state": "/var/lib/florete-provider",   // a directory per kind is in it
//	  "needs": "/var/lib/florete/needs",      // where the SVIDs of all kinds but "cert" are delivered
//	  "cert": {"issuingCertificate": "issuing.crt"},
//	  "config": {"artifacts": "/srv/florete"},
//	  "file": {"dir": "/srv/florete-files"},
//	  "oidc": {"listen": "127.0.0.1:5556", "users": "users.hujson"},
//	}
//
// Relative paths are relative to the file.
package settings

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/tailscale/hujson"

	"github.com/florete/florete"
)

// Settings of the process that answers one kind of need. Of the kinds that one alone is
// set.
type Settings struct {
	Policy string `json:"policy"`
	State  string `json:"state"` // directory of all kinds' directories
	Needs  string `json:"needs"` // directory of what activation delivers

	Cert   *Cert   `json:"cert"`
	Config *Config `json:"config"`
	File   *File   `json:"file"`
	OIDC   *OIDC   `json:"oidc"`
}

// Cert are the settings of kind "cert".
type Cert struct {
	// IssuingCertificate is the file with the certificate that `florctl ca sign`
	// made for this host's issuing.csr.
	IssuingCertificate string `json:"issuingCertificate"`
}

// Config are the settings of kind "config".
type Config struct {
	Artifacts string `json:"artifacts"` // what `florctl publish --to` names
}

// File are the settings of kind "file".
type File struct {
	Dir string `json:"dir"` // of the files that topologies refer to
}

// OIDC are the settings of kind "oidc".
type OIDC struct {
	Listen string `json:"listen"` // loopback host:port of the issuer's pages
	Users  string `json:"users"`  // file of those who can sign in
}

// Kinds are those that have settings.
var Kinds = []string{"cert", "config", "file", "oidc"}

// Dir is the state of the process of a kind, and its alone.
func (s *Settings) Dir(kind string) string { return filepath.Join(s.State, kind) }

// Identity is the directory of the need that delivers the SVID of the process of a kind.
func (s *Settings) Identity(kind string) string {
	return filepath.Join(s.Needs, "cert-service-"+florete.ProviderService(kind))
}

// Load reads the settings of the process of a kind, or with none what all have in common.
func Load(path, kind string) (*Settings, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("settings: %w", err)
	}
	dir, err := filepath.Abs(filepath.Dir(path))
	if err != nil {
		return nil, fmt.Errorf("settings: %w", err)
	}
	s, err := parse(b, kind)
	if err != nil {
		return nil, fmt.Errorf("settings %s%w", path, err)
	}
	for _, p := range s.paths() {
		if *p != "" && !filepath.IsAbs(*p) {
			*p = filepath.Join(dir, *p)
		}
	}
	return s, nil
}

// parse returns errors that begin with a place: ":line:column: …" or ": …".
func parse(b []byte, kind string) (*Settings, error) {
	v, err := hujson.Parse(b)
	if err != nil {
		return nil, fmt.Errorf(": %w", err)
	}
	var s Settings
	if err := walk(b, v, reflect.TypeOf(Settings{}), others(kind)); err != nil {
		return nil, err
	}
	if object, ok := v.Value.(*hujson.Object); ok {
		object.Members = slices.DeleteFunc(object.Members, func(m hujson.ObjectMember) bool { return others(kind)[name(m)] })
	}
	v.Standardize()
	if err := florete.Decode(v.Pack(), &s); err != nil {
		return nil, fmt.Errorf(": %w", err)
	}
	return &s, s.check(kind)
}

// others are the sections of other kinds.
func others(kind string) map[string]bool {
	all := map[string]bool{}
	for _, k := range Kinds {
		all[k] = k != kind
	}
	return all
}

func (s *Settings) paths() []*string {
	all := []*string{&s.Policy, &s.State, &s.Needs}
	switch {
	case s.Cert != nil:
		all = append(all, &s.Cert.IssuingCertificate)
	case s.Config != nil:
		all = append(all, &s.Config.Artifacts)
	case s.File != nil:
		all = append(all, &s.File.Dir)
	case s.OIDC != nil:
		all = append(all, &s.OIDC.Users)
	}
	return all
}

func (s *Settings) check(kind string) error {
	type key struct{ name, value, remedy string }
	want := []key{
		{"policy", s.Policy, "name the directory with this host's policy"},
		{"state", s.State, "name a directory for the state of all kinds"},
	}
	if kind != "" && kind != "cert" {
		want = append(want, key{"needs", s.Needs, "name the directory of this host's needs, which has the SVID of this process"})
	}
	switch {
	case s.Cert != nil:
		want = append(want, key{"cert.issuingCertificate", s.Cert.IssuingCertificate, "name the file for the certificate that florctl ca sign makes"})
	case s.Config != nil:
		want = append(want, key{"config.artifacts", s.Config.Artifacts, "name the directory that flor-provider import writes"})
	case s.File != nil:
		want = append(want, key{"file.dir", s.File.Dir, "name the directory of the files that topologies refer to"})
	case s.OIDC != nil:
		want = append(want, key{"oidc.listen", s.OIDC.Listen, "name a loopback host:port for the issuer's pages"},
			key{"oidc.users", s.OIDC.Users, "name the file of those who can sign in"})
	case slices.Contains(Kinds, kind):
		want = append(want, key{kind, "", "write a section for this kind"})
	case kind != "":
		return fmt.Errorf(": kind %q, want one of %s", kind, strings.Join(Kinds, ", "))
	}
	for _, k := range want {
		if k.value == "" {
			return fmt.Errorf(": %q is missing: %s", k.name, k.remedy)
		}
	}
	return nil
}
