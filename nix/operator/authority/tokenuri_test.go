package authority_test

import (
	"strings"
	"testing"

	"github.com/florete/florete/nix/operator/authority"
)

func TestParseTokenURI(t *testing.T) {
	for text, want := range map[string]authority.TokenURI{
		"pkcs11:token=root;object=demo":                            {Token: "root", Object: "demo"},
		" pkcs11:object=a%3Bb%20c;serial=07?pin-source=/root/pin ": {Serial: "07", Object: "a;b c", PINSource: "/root/pin"},
		"pkcs11:token=r;id=%01%FF?module-path=/lib/m.so":           {Token: "r", ID: "\x01\xff", Module: "/lib/m.so"},
		"pkcs11:token=r;id=a?pin-source=file:/p&module-path=m.so":  {Token: "r", ID: "a", PINSource: "/p", Module: "m.so"},
		"pkcs11:token=r;id=a?pin-source=file:///p":                 {Token: "r", ID: "a", PINSource: "/p"},
	} {
		u, err := authority.ParseTokenURI(text)
		if err != nil || u.String() != strings.TrimSpace(text) {
			t.Errorf("%s: %v", text, err)
		}
		if u.Token != want.Token || u.Serial != want.Serial || u.Object != want.Object || u.ID != want.ID || u.Module != want.Module || u.PINSource != want.PINSource {
			t.Errorf("%s: got %+v, want %+v", text, u, want)
		}
	}
	for text, want := range map[string]string{
		"token=root;object=demo":                             "want one such as",
		"pkcs11:":                                            "want one of token=LABEL and serial=NUMBER",
		"pkcs11:object=demo":                                 "want one of token=LABEL and serial=NUMBER",
		"pkcs11:token=a;serial=b;object=demo":                "want one of token=LABEL and serial=NUMBER",
		"pkcs11:token=root":                                  "want object=LABEL, id=ID, or both",
		"pkcs11:token=root;token=other;object=demo":          "token twice",
		"pkcs11:token=;object=demo":                          "token: no value",
		"pkcs11:token=root;object=%4":                        "object: no value, or a percent sign without two digits",
		"pkcs11:token=root;model=HSM;object=demo":            `attribute "model": want token or serial`,
		"pkcs11:token=root;object=demo?module-name=m":        `attribute "module-name"`,
		"pkcs11:token=root;object=demo?pin-value=314159":     "pin-value: everybody on this machine sees",
		"pkcs11:token=root;object=demo;pin-value=314159":     "pin-value: everybody on this machine sees",
		"pkcs11:token=root;object=demo?pin-source=pin":       "pin-source: want the path of a file from the root",
		"pkcs11:token=root;object=demo?pin-source=|/bin/pin": "pin-source: want the path of a file from the root",
	} {
		if _, err := authority.ParseTokenURI(text); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "314159") {
			t.Errorf("%s: got %v, want %q", text, err, want)
		}
	}
	if !authority.IsTokenURI([]byte("\npkcs11:token=a")) || authority.IsTokenURI([]byte("-----BEGIN PRIVATE KEY-----")) {
		t.Error("a key file is taken for another")
	}
}

// FuzzParse: what is read is read again from what it is written as.
func FuzzParse(f *testing.F) {
	f.Add("pkcs11:token=root;object=a%3Bb?pin-source=/root/pin&module-path=/lib/m.so")
	f.Fuzz(func(t *testing.T, text string) {
		u, err := authority.ParseTokenURI(text)
		if err != nil {
			return
		}
		if again, err := authority.ParseTokenURI(u.String()); err != nil || again != u {
			t.Errorf("%q: %+v, then %+v, %v", text, u, again, err)
		}
	})
}
