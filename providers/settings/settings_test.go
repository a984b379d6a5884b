package settings_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/florete/florete/providers/settings"
)

func load(t *testing.T, text string) (string, *settings.Settings, error) {
	t.Helper()
	dir := t.TempDir()
	path := filepath.Join(dir, "provider.hujson")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := settings.Load(path)
	return dir, s, err
}

func TestLoad(t *testing.T) {
	dir, s, err := load(t, `{
		// A person wrote this.
		"policy": "/etc/florete/documents",
		"state": "state",
		"cert": {"issuingCertificate": "../issuing.crt"}, /* beside */
		"config": {"artifacts": "published"},
		"oidc": {"listen": "127.0.0.1:5556", "users": "users.hujson",},
	}`)
	if err != nil {
		t.Fatal(err)
	}
	for got, want := range map[string]string{
		s.Policy:                  "/etc/florete/documents",
		s.State:                   filepath.Join(dir, "state"),
		s.Cert.IssuingCertificate: filepath.Join(filepath.Dir(dir), "issuing.crt"),
		s.Config.Artifacts:        filepath.Join(dir, "published"),
		s.OIDC.Listen:             "127.0.0.1:5556",
		s.OIDC.Users:              filepath.Join(dir, "users.hujson"),
		s.Identity:                "",
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestRefused(t *testing.T) {
	for text, want := range map[string]string{
		"{\n  \"polcy\": \"a\"}":                                `provider.hujson:2:3: unknown key "polcy": did you mean "policy"?`,
		`{"policy":"a","state":"b","cert":{"issuer":"c"}}`:      `:1:35: unknown key "issuer": want one of issuingCertificate`,
		`{"Policy":"a"}`:                                        `:1:2: unknown key "Policy": did you mean "policy"?`,
		`{"policy":"a","policy":"b","state":"s"}`:               `.policy: given twice`,
		`{"policy":1}`:                                          `cannot unmarshal number into Go struct field Settings.policy of type string`,
		`{"policy":null}`:                                       `.policy: null`,
		`{"policy":"a"`:                                         `unexpected EOF`,
		`{"state":"b"}`:                                         `"policy" is missing: name the directory with this host's policy`,
		`{"policy":"a"}`:                                        `"state" is missing: name a directory for this provider alone`,
		`{"policy":"a","state":"b"}`:                            `"identity" is missing: name the directory of the need that delivers this provider's SVID, or run kind "cert"`,
		`{"policy":"a","state":"b","identity":"c","cert":{}}`:   `"identity" beside "cert"`,
		`{"policy":"a","state":"b","cert":{}}`:                  `"cert.issuingCertificate" is missing`,
		`{"policy":"a","state":"b","identity":"c","config":{}}`: `"config.artifacts" is missing`,
		`{"policy":"a","state":"b","identity":"c","oidc":{}}`:   `"oidc.listen" is missing`,
		`{"policy":"a","state":"b","identity":"c","oidc":{"listen":"[::1]:1"}}`: `"oidc.users" is missing`,
		`[]`: `cannot unmarshal array`,
	} {
		if _, _, err := load(t, text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want …%s…", text, err, want)
		}
	}
	if _, err := settings.Load(filepath.Join(t.TempDir(), "none")); err == nil || !strings.HasPrefix(err.Error(), "settings: open ") {
		t.Errorf("got %v", err)
	}
}
