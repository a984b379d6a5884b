// Package settings reads the settings file of a provider host: HuJSON, which is
// JSON with comments and trailing commas.
//
//	{
//	  "policy": "/etc/florete/documents",     // the directory with policy.json
//	  "state": "/var/lib/florete-provider",   // of this provider alone
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

	"github.com/tailscale/hujson"

	"github.com/florete/florete"
)

// Settings of a provider host. A kind without settings is not run.
type Settings struct {
	Policy string `json:"policy"`
	State  string `json:"state"`

	// Identity is the directory of the need that delivers the provider's own
	// SVID. A host that runs kind "cert" issues it to itself and leaves it empty.
	Identity string `json:"identity"`

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

// Load reads a settings file.
func Load(path string) (*Settings, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("settings: %w", err)
	}
	dir, err := filepath.Abs(filepath.Dir(path))
	if err != nil {
		return nil, fmt.Errorf("settings: %w", err)
	}
	s, err := parse(b)
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
func parse(b []byte) (*Settings, error) {
	v, err := hujson.Parse(b)
	if err != nil {
		return nil, fmt.Errorf(": %w", err)
	}
	var s Settings
	if err := unknown(b, v, &s); err != nil {
		return nil, err
	}
	v.Standardize()
	if err := florete.Decode(v.Pack(), &s); err != nil {
		return nil, fmt.Errorf(": %w", err)
	}
	return &s, s.check()
}

func (s *Settings) paths() []*string {
	all := []*string{&s.Policy, &s.State, &s.Identity}
	if s.Cert != nil {
		all = append(all, &s.Cert.IssuingCertificate)
	}
	if s.Config != nil {
		all = append(all, &s.Config.Artifacts)
	}
	if s.File != nil {
		all = append(all, &s.File.Dir)
	}
	if s.OIDC != nil {
		all = append(all, &s.OIDC.Users)
	}
	return all
}

func (s *Settings) check() error {
	type key struct{ name, value, remedy string }
	want := []key{
		{"policy", s.Policy, "name the directory with this host's policy"},
		{"state", s.State, "name a directory for this provider alone"},
	}
	switch {
	case s.Cert == nil:
		want = append(want, key{"identity", s.Identity, "name the directory of the need that delivers this provider's SVID, or run kind \"cert\""})
	case s.Identity != "":
		return fmt.Errorf(": \"identity\" beside \"cert\": a host that runs kind \"cert\" issues its own SVID: leave \"identity\" out")
	default:
		want = append(want, key{"cert.issuingCertificate", s.Cert.IssuingCertificate, "name the file for the certificate that florctl ca sign makes"})
	}
	if s.Config != nil {
		want = append(want, key{"config.artifacts", s.Config.Artifacts, "name the directory that florctl publish writes"})
	}
	if s.File != nil {
		want = append(want, key{"file.dir", s.File.Dir, "name the directory of the files that topologies refer to"})
	}
	if s.OIDC != nil {
		want = append(want, key{"oidc.listen", s.OIDC.Listen, "name a loopback host:port for the issuer's pages"},
			key{"oidc.users", s.OIDC.Users, "name the file of those who can sign in"})
	}
	for _, k := range want {
		if k.value == "" {
			return fmt.Errorf(": %q is missing: %s", k.name, k.remedy)
		}
	}
	return nil
}
