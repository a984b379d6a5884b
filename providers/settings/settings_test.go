package settings_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/florete/florete/providers/settings"
)

func load(t *testing.T, text, kind string) (string, *settings.Settings, error) {
	t.Helper()
	dir := t.TempDir()
	path := filepath.Join(dir, "provider.hujson")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := settings.Load(path, kind)
	return dir, s, err
}

const whole = `{
	// A person wrote this.
	"policy": "/etc/florete/documents",
	"state": "state",
	"needs": "needs",
	"cert": {"issuingCertificate": "../issuing.crt"}, /* beside */
	"config": {"artifacts": "published"},
	"oidc": {"listen": "127.0.0.1:5556", "users": "users.hujson",},
}`

func TestLoad(t *testing.T) {
	get := func(kind string) (string, *settings.Settings) {
		t.Helper()
		dir, s, err := load(t, whole, kind)
		if err != nil {
			t.Fatal(err)
		}
		return dir, s
	}
	all, common := get("")
	a, cert := get("cert")
	b, config := get("config")
	c, oidc := get("oidc")
	for got, want := range map[string]string{
		common.Dir("config"):         filepath.Join(all, "state", "config"),
		cert.Policy:                  "/etc/florete/documents",
		cert.Dir("cert"):             filepath.Join(a, "state", "cert"),
		cert.Cert.IssuingCertificate: filepath.Join(filepath.Dir(a), "issuing.crt"),
		config.Config.Artifacts:      filepath.Join(b, "published"),
		oidc.OIDC.Listen:             "127.0.0.1:5556",
		oidc.OIDC.Users:              filepath.Join(c, "users.hujson"),
		oidc.Identity("oidc"):        filepath.Join(c, "needs/cert-service-florete-provider-oidc"),
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	if cert.OIDC != nil || oidc.Cert != nil {
		t.Error("a process has read the section of another")
	}
}

// TestOtherSections: what is wrong in the section of another kind stops no process.
func TestOtherSections(t *testing.T) {
	text := strings.Replace(whole, `"users"`, `"user"`, 1)
	for kind, want := range map[string]string{"": "", "cert": "", "config": "", "oidc": `unknown key "user": did you mean "users"?`} {
		if _, _, err := load(t, text, kind); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("kind %q: got %v, want %q", kind, err, want)
		}
	}
}

func TestRefused(t *testing.T) {
	for _, c := range []struct{ kind, text, want string }{
		{"", "{\n  \"polcy\": \"a\"}", `provider.hujson:2:3: unknown key "polcy": did you mean "policy"?`},
		{"cert", `{"policy":"a","state":"b","cert":{"issuer":"c"}}`, `:1:35: unknown key "issuer": want one of issuingCertificate`},
		{"", `{"Policy":"a"}`, `:1:2: unknown key "Policy": did you mean "policy"?`},
		{"", `{"policy":"a","policy":"b","state":"s"}`, `.policy: given twice`},
		{"", `{"policy":1}`, `cannot unmarshal number into Go struct field Settings.policy of type string`},
		{"", `{"policy":null}`, `.policy: null`},
		{"", `{"policy":"a"`, `unexpected EOF`},
		{"", `{"state":"b"}`, `"policy" is missing: name the directory with this host's policy`},
		{"", `{"policy":"a"}`, `"state" is missing: name a directory for the state of all kinds`},
		{"config", `{"policy":"a","state":"b"}`, `"needs" is missing: name the directory of this host's needs`},
		{"cert", `{"policy":"a","state":"b"}`, `"cert" is missing: write a section for this kind`},
		{"cert", `{"policy":"a","state":"b","cert":{}}`, `"cert.issuingCertificate" is missing`},
		{"config", `{"policy":"a","state":"b","needs":"c","config":{}}`, `"config.artifacts" is missing`},
		{"file", `{"policy":"a","state":"b","needs":"c","file":{}}`, `"file.dir" is missing`},
		{"oidc", `{"policy":"a","state":"b","needs":"c","oidc":{}}`, `"oidc.listen" is missing`},
		{"oidc", `{"policy":"a","state":"b","needs":"c","oidc":{"listen":"[::1]:1"}}`, `"oidc.users" is missing`},
		{"tls", `{"policy":"a","state":"b"}`, `kind "tls", want one of cert, config, file, oidc`},
		{"", `[]`, `cannot unmarshal array`},
	} {
		if _, _, err := load(t, c.text, c.kind); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s of %s: got %v, want …%s…", c.kind, c.text, err, c.want)
		}
	}
	if _, err := settings.Load(filepath.Join(t.TempDir(), "none"), ""); err == nil || !strings.HasPrefix(err.Error(), "settings: open ") {
		t.Errorf("got %v", err)
	}
}
