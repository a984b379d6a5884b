package oidc

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/crypto/bcrypt"
	"golang.org/x/oauth2"
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
		`[` + strings.Replace(entry("a@b", "1", good), "{", `{"groups":["a","b","a"],`, 1) + `]`:                    `groups: "a": want each once`,
		`[` + strings.Replace(entry("a@b", "1", good), "{", `{"groups":[""],`, 1) + `]`:                             `groups: ""`,
		`[` + strings.Replace(entry("a@b", "1", good), "{", `{"groups":["`+strings.Repeat("a", 129)+`"],`, 1) + `]`: "1 to 128 bytes",
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

// TestUsersGroups checks that a person in an allowed group of the file can sign in, and that
// removing the person from the group ends the tokens.
func TestUsersGroups(t *testing.T) {
	t.Parallel()
	f := prepared(t)
	f.want = func(r *Request) { r.AllowedGroups = []string{"writers"} }
	f.grant(callback)
	in := func(groups string) {
		text := `[{"email": "` + email + `", "username": "alice", "userID": "u-1", "hash": "` + hash() + `", "groups": ` + groups + `}]`
		if err := os.WriteFile(filepath.Join(f.dir, "users"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	in(`["readers"]`)
	f.start()
	s := f.service(f.register(1))
	s.Scopes = append(s.Scopes, "groups")
	if p := s.submit(s.begin("state", "verifier"), email, password); p.status != 403 || p.location != nil {
		t.Errorf("in another group: status %d, sent to %v: %s", p.status, p.location, p.text)
	}
	in(`["readers", "writers"]`)
	f.restart()
	token, err := s.Exchange(s.ctx(), s.signIn("state", "verifier"), oauth2.VerifierOption("verifier"))
	if err != nil {
		t.Fatal(err)
	}
	if c := s.claims(token); !slices.Equal(c.Groups, []string{"readers", "writers"}) {
		t.Errorf("the token has groups %q", c.Groups)
	}
	in(`["readers"]`)
	f.age(token)
	f.restart()
	_, err = s.refresh(token.RefreshToken)
	refused(t, "who was taken out of the group", err, "invalid_grant")
}
