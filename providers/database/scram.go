package database

import (
	"crypto/hmac"
	"crypto/pbkdf2"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
)

// verifier returns a password in the form in which PostgreSQL stores it for SCRAM-SHA-256 (RFC
// 5803). Statements contain the verifier instead of the password, because the server may log them.
// The salt is derived from the password, so that the verifier of a password is always the same.
// Passwords have 128 random bits.
func verifier(password string) string {
	const rounds = 4096
	sum := func(key []byte, text string) []byte {
		h := hmac.New(sha256.New, key)
		h.Write([]byte(text))
		return h.Sum(nil)
	}
	salt := sum([]byte(password), "florete database salt v1")[:16]
	salted, err := pbkdf2.Key(sha256.New, password, salt, rounds, sha256.Size)
	if err != nil {
		panic(err) // constants that FIPS 140 accepts
	}
	stored := sha256.Sum256(sum(salted, "Client Key"))
	text := base64.StdEncoding.EncodeToString
	return fmt.Sprintf("SCRAM-SHA-256$%d:%s$%s:%s", rounds, text(salt), text(stored[:]), text(sum(salted, "Server Key")))
}
