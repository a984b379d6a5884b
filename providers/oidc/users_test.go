package oidc

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/crypto/bcrypt"
)

func TestUsers(t *testing.T) {
	good := hash()
	weak := string(must(bcrypt.GenerateFromPassword([]byte("password"), bcrypt.MinCost)))
	entry := func(email, id, hash string) string {
		return `{"email":"` + email + `","username":"a","userID":"` + id + `","hash":"` + hash + `"}`
	}
	for text, part := range map[string]string{
		`{}`:                               "object",
		`[` + entry("a", "1", good) + `]`:  `email "a"`,
		`[` + entry("a@b", "", good) + `]`: "no userID",
		`[` + entry("a@b", "1", good) + `,` + entry("A@b", "2", good) + `]`: `user 1: email "A@b": given twice`,
		`[` + entry("a@b", "1", good) + `,` + entry("c@b", "1", good) + `]`: `user 1 (c@b): userID "1": given twice`,
		`[` + entry("a@b", "1", weak) + `]`:                                 "bcrypt of cost 10",
		`[` + entry("a@b", "1", "password") + `]`:                           "bcrypt of cost 10",
		`[{"mail":"a@b"}]`: `"mail"`,
	} {
		_, err := parseUsers([]byte(text))
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("%s: error is %v, want %q in it", text, err, part)
		}
		if err != nil && (strings.Contains(err.Error(), good) || strings.Contains(err.Error(), weak)) {
			t.Errorf("error tells the hash: %v", err)
		}
	}
	users, err := parseUsers([]byte(`// who may sign in
	[` + entry("A@b", "1", good) + `,]`))
	if err != nil || len(users) != 1 || users[0].Email != "a@b" {
		t.Errorf("users are %v, %v", users, err)
	}
}

func TestUsersOthersCanRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "users")
	if err := os.WriteFile(path, []byte(`[]`), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := readUsers(path); err == nil || !strings.Contains(err.Error(), "0600") || !strings.Contains(err.Error(), path) {
		t.Errorf("error is %v, want the remedy for %s", err, path)
	}
}
