package oidc

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/dexidp/dex/storage"
	"github.com/tailscale/hujson"
	"golang.org/x/crypto/bcrypt"

	"github.com/florete/florete/internal/secretfile"
	"github.com/florete/florete/internal/strictjson"
)

// user is one entry of the users file.
type user struct {
	Email    string `json:"email"` // for signing in; case does not matter
	Username string `json:"username"`
	UserID   string `json:"userID"` // never given to another user
	Hash     string `json:"hash"`   // bcrypt

	Groups []string `json:"groups"` // for tokens and allowedGroups, beside those of directories
}

const maxGroup = 128 // bytes of a group's name, as of allowedGroups

// minCost and maxCost are the smallest and largest cost of a password hash. Dex accepts only hashes
// within these limits.
const minCost, maxCost = bcrypt.DefaultCost, 16

// readUsers reads the users file. Only this account may be able to read the file, because passwords
// can be guessed from hashes.
func readUsers(path string) ([]storage.Password, error) {
	b, err := secretfile.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("oidc users: %w", err)
	}
	users, err := parseUsers(b)
	if err != nil {
		return nil, fmt.Errorf("oidc users: %s: %w", path, err)
	}
	return users, nil
}

func parseUsers(b []byte) ([]storage.Password, error) {
	plain, err := hujson.Standardize(b)
	if err != nil {
		return nil, err
	}
	var users []user
	if err := strictjson.Decode(plain, &users); err != nil {
		return nil, err
	}
	emails, ids := map[string]bool{}, map[string]bool{}
	var all []storage.Password
	for i, u := range users {
		email := strings.ToLower(u.Email)
		switch {
		case !strings.Contains(email, "@"):
			return nil, fmt.Errorf("user %d: email %q: not an email address", i, u.Email)
		case emails[email]:
			return nil, fmt.Errorf("user %d: email %q: given twice", i, u.Email)
		case u.UserID == "":
			return nil, fmt.Errorf("user %d (%s): no userID: give one that stays the same when the email changes", i, u.Email)
		case ids[u.UserID]:
			return nil, fmt.Errorf("user %d (%s): userID %q: given twice", i, u.Email, u.UserID)
		}
		for j, g := range u.Groups {
			if g == "" || len(g) > maxGroup || strings.ContainsFunc(g, unicode.IsControl) || slices.Contains(u.Groups[:j], g) {
				return nil, fmt.Errorf("user %d (%s): groups: %q: want each once, by a name of 1 to %d bytes without control characters", i, u.Email, g, maxGroup)
			}
		}
		if cost, err := bcrypt.Cost([]byte(u.Hash)); err != nil || cost < minCost || cost > maxCost {
			return nil, fmt.Errorf("user %d (%s): hash: not bcrypt of cost %d to %d: make it with \"htpasswd -BnC %d ''\"", i, u.Email, minCost, maxCost, minCost)
		}
		emails[email], ids[u.UserID] = true, true
		all = append(all, storage.Password{
			Email:             email,
			Hash:              []byte(u.Hash),
			Username:          u.Username,
			PreferredUsername: u.Username,
			UserID:            u.UserID,
			Groups:            u.Groups,
		})
	}
	return all, nil
}
