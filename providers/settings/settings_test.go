package settings_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/florete/florete/internal/hostdir"
	"github.com/florete/florete/providers/cert"
	"github.com/florete/florete/providers/distribution"
	"github.com/florete/florete/providers/file"
	"github.com/florete/florete/providers/jwt"
	"github.com/florete/florete/providers/oidc"
	"github.com/florete/florete/providers/server"
	"github.com/florete/florete/providers/settings"
)

func load(t *testing.T, text, kind string) (string, *settings.Settings, error) {
	t.Helper()
	dir := t.TempDir()
	path := filepath.Join(dir, "provider.hujson")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := settings.Load("", path, kinds, kind)
	return dir, s, err
}

var kinds = settings.Kinds{
	"cert":   func() server.Section { return new(cert.Settings) },
	"config": func() server.Section { return new(distribution.Settings) },
	"file":   func() server.Section { return new(file.Settings) },
	"jwt":    func() server.Section { return new(jwt.Settings) },
	"oidc":   func() server.Section { return new(oidc.Settings) },
}

const whole = `{
	// A person wrote this.
	"state": "state",
	"activation": "/var/lib/florete",
	"retention": {"audit": 7},
	"cert": {"issuingCertificate": "../issuing.crt"}, /* beside */
	"config": {"keep": 3},
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
	a, issuing := get("cert")
	_, documents := get("config")
	c, signing := get("oidc")
	for got, want := range map[string]string{
		common.Dir("config"): filepath.Join(all, "state", "config"),
		issuing.Policy():     "/var/lib/florete/documents/current",
		issuing.Dir("cert"):  filepath.Join(a, "state", "cert"),
		issuing.Section.(*cert.Settings).IssuingCertificate:                           filepath.Join(filepath.Dir(a), "issuing.crt"),
		fmt.Sprint(documents.Section.(*distribution.Settings).Keep, common.Retention): "3 {7 0}",
		signing.Section.(*oidc.Settings).Listen:                                       "127.0.0.1:5556",
		signing.Section.(*oidc.Settings).Users:                                        filepath.Join(c, "users.hujson"),
		signing.Identity("oidc"):                                                      "/var/lib/florete/needs/cert-service-florete-provider-oidc",
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// TestDefaults checks that every setting has a default, and that the instance's own file may be
// missing.
func TestDefaults(t *testing.T) {
	const blue hostdir.Instance = "blue-that-nobody-has"
	for _, c := range []struct{ kind, text, want string }{
		{"cert", "", "/var/lib/florete_blue-that-nobody-has-provider/cert/issuing.crt"},
		{"cert", `{"state":"/srv"}`, "/srv/cert/issuing.crt"},
		{"cert", `{"state":"/srv","cert":{}}`, "/srv/cert/issuing.crt"},
		{"file", "", "/var/lib/florete_blue-that-nobody-has-provider/file/files"},
		{"jwt", "", "127.0.0.1:5557"},
		{"oidc", `{"oidc":{"users":"people"}}`, "127.0.0.1:5556 DIR/people"},
		{"oidc", `{"state":"/srv"}`, "127.0.0.1:5556 /srv/oidc/users.hujson"},
	} {
		path, dir := settings.File(blue), ""
		if c.text != "" {
			dir = t.TempDir()
			path = filepath.Join(dir, "provider.hujson")
			if err := os.WriteFile(path, []byte(c.text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		s, err := settings.Load(blue, path, kinds, c.kind)
		if err != nil {
			t.Fatal(err)
		}
		var got string
		switch section := s.Section.(type) {
		case *cert.Settings:
			got = section.IssuingCertificate
		case *file.Settings:
			got = section.Dir
		case *jwt.Settings:
			got = section.Listen
		case *oidc.Settings:
			got = section.Listen + " " + section.Users
		}
		if want := strings.ReplaceAll(c.want, "DIR", dir); got != want || s.Activation != blue.State() {
			t.Errorf("%s of %q: got %q, %q, want %q", c.kind, c.text, got, s.Activation, want)
		}
	}
}

// TestOtherSections checks that a process starts although the section of another kind contains an
// error.
func TestOtherSections(t *testing.T) {
	text := strings.Replace(whole, `"users"`, `"user"`, 1)
	if _, s, err := load(t, `{"activation":"a","state":"b"}`, "config"); err != nil || s.Section.(*distribution.Settings).Keep.Or(10) != 10 {
		t.Errorf("a section of which nothing is needed: %v", err)
	}
	for kind, want := range map[string]string{"": "", "cert": "", "config": "", "oidc": `unknown key "user": did you mean "users"?`} {
		if _, _, err := load(t, text, kind); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("kind %q: got %v, want %q", kind, err, want)
		}
	}
}

func TestRefused(t *testing.T) {
	for _, c := range []struct{ kind, text, want string }{
		{"", "{\n  \"activaton\": \"a\"}", `provider.hujson:2:3: unknown key "activaton": did you mean "activation"?`},
		{"cert", `{"activation":"a","state":"b","cert":{"issuer":"c"}}`, `:1:39: unknown key "issuer": want one of issuingCertificate`},
		{"", `{"Activation":"a"}`, `:1:2: unknown key "Activation": did you mean "activation"?`},
		{"", `{"activation":"a","activation":"b","state":"s"}`, `.activation: given twice`},
		{"", `{"activation":1}`, `cannot unmarshal number into Go struct field Common.activation of type`},
		{"cert", `{"activation":"a","state":"b","cert":{"issuingCertificate":"c"},"cert":{}}`, `.cert: given twice`},
		{"cert", `{"activation":"a","state":"b","cert":null}`, `.cert: null`},
		{"", `{"activation":null}`, `.activation: null`},
		{"", `{"activation":"a"`, `unexpected EOF`},
		{"", `{"activation":"a","state":"b","retention":{"audit":0}}`, `0, want at least 1`},
		{"", `{"activation":"a","state":"b","retention":{"audits":1}}`, `:1:44: unknown key "audits": did you mean "audit"?`},
		{"config", `{"activation":"a","state":"b","config":{"keep":0}}`, `.config: 0, want at least 1`},
		{"tls", `{"activation":"a","state":"b"}`, `kind "tls", want one of cert, config, file, jwt, oidc`},
		{"", `[]`, `cannot unmarshal array`},
	} {
		if _, _, err := load(t, c.text, c.kind); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s of %s: got %v, want …%s…", c.kind, c.text, err, c.want)
		}
	}
	if _, err := settings.Load("", filepath.Join(t.TempDir(), "none"), kinds, ""); err == nil || !strings.HasPrefix(err.Error(), "settings: open ") {
		t.Errorf("got %v", err)
	}
}
