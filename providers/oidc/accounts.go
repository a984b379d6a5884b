package oidc

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"strings"

	"github.com/dexidp/dex/storage"
)

// accounts is a storage that contains the people of the users file. The keys are their email
// addresses in lower case.
type accounts struct {
	storage.Storage
	users  []storage.Password
	secret []byte // decides whose work an account costs that is nobody's
}

func (a accounts) find(email string) (storage.Password, bool) {
	for _, u := range a.users {
		if u.Email == strings.ToLower(email) {
			return u, true
		}
	}
	return storage.Password{}, false
}

// GetPassword returns the account with the given e-mail address, including its password hash. If
// there is no such account during a sign-in, it returns a hash that matches no password. Checking
// that hash takes as long as checking a real one, so that nobody can find out which accounts exist.
func (a accounts) GetPassword(ctx context.Context, email string) (storage.Password, error) {
	u, ok := a.find(email)
	switch {
	case ok:
		return u, nil
	case signInOf(ctx) == nil:
		return u, storage.ErrNotFound
	}
	hash := []byte("$2a$10$" + strings.Repeat(".", 53))
	h := hmac.New(sha256.New, a.secret)
	h.Write([]byte(strings.ToLower(email)))
	if n := uint64(len(a.users)); n > 0 {
		hash = bytes.Clone(a.users[binary.BigEndian.Uint64(h.Sum(nil))%n].Hash)
	}
	// The sum is the last 31 characters; the chance that a password has this one is 2^-184.
	copy(hash[len(hash)-31:], strings.Repeat(".", 31))
	return storage.Password{Hash: hash}, nil
}
