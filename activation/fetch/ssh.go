package fetch

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/internal/hostdir"
	"github.com/florete/florete/internal/pubkey"
	"github.com/florete/florete/internal/spiffe"
)

// valueAuthority is the name of the value in an answer of kind "ssh" that contains the public keys
// of the certificate authority.
const valueAuthority = "ca"

// sshRequest returns the private key of an SSH user certificate, and the body of the request for
// the certificate. A request for the public keys of the certificate authority has no private key.
func (h *Host) sshRequest(n document.Need) (body json.RawMessage, key string, err error) {
	r, err := n.SSH()
	if err != nil || r.ID.IsZero() {
		return n.Request, "", err
	}
	secret, public, err := h.sshKey(n.ID)
	if err != nil {
		return nil, "", err
	}
	body, err = json.Marshal(hostapi.SSHBody{ID: r.ID, PublicKey: strings.TrimSuffix(string(ssh.MarshalAuthorizedKey(public)), "\n")})
	return body, string(secret), err
}

// sshKey returns the key pair that was delivered last for a need, or a new one. A renewal keeps the
// key, because ssh reads the certificate when it starts and the private key only after the server
// has answered. If the key changed in between, the login would be refused.
func (h *Host) sshKey(need string) (secret []byte, public ssh.PublicKey, err error) {
	b, err := hostdir.ReadDelivered(h.Layout.Need(need), document.FileSSHKey)
	if err == nil {
		if own, err := ssh.ParsePrivateKey(b); err == nil && own.PublicKey().Type() == ssh.KeyAlgoED25519 {
			return b, own.PublicKey(), nil
		}
	}
	return pubkey.NewSSH()
}

// completeSSH checks an answer of kind ssh. If it is a certificate, completeSSH adds the private
// key, which this host has generated.
func completeSSH(n document.Need, p pending, answer *hostapi.Answer, now time.Time) *hostapi.Error {
	r, err := n.SSH()
	if err != nil {
		return hostapi.Errorf(hostapi.CodeMalformed, "%v", err)
	}
	if r.ID.IsZero() {
		if err := checkAuthority(answer.Values[valueAuthority]); err != nil {
			return hostapi.Errorf(hostapi.CodeMalformed, "answer: ca: %v", err)
		}
		return nil
	}
	c, err := parseSSH(answer.Values[valueCertificate])
	if err == nil {
		err = certifies(c, p.PrivateKey, r.ID)
	}
	if err != nil {
		return hostapi.Errorf(hostapi.CodeMalformed, "answer: certificate: %v", err)
	}
	after, before := time.Unix(int64(c.ValidAfter), 0), time.Unix(int64(c.ValidBefore), 0)
	if now.Before(after) || !now.Before(before) {
		return hostapi.Errorf(hostapi.CodeClock, "answer: certificate: valid from %s to %s, here it is %s: set the clock",
			after.UTC().Format(time.RFC3339), before.UTC().Format(time.RFC3339), now.UTC().Format(time.RFC3339))
	}
	answer.Expires = before.Unix()
	answer.Values[valueKey] = p.PrivateKey
	return nil
}

// parseSSH parses one SSH certificate, in the form of authorized_keys.
func parseSSH(text string) (*ssh.Certificate, error) {
	key, _, options, rest, err := ssh.ParseAuthorizedKey([]byte(text))
	if err != nil {
		return nil, err
	}
	c, ok := key.(*ssh.Certificate)
	if !ok || len(options) > 0 || len(bytes.TrimSpace(rest)) > 0 {
		return nil, errors.New("want one SSH certificate without options")
	}
	return c, nil
}

// certifies returns an error unless c certifies that the public half of a private key belongs to a
// user. It does not check the time, or who has signed c.
func certifies(c *ssh.Certificate, private string, id spiffe.ID) error {
	own, err := ssh.ParsePrivateKey([]byte(private))
	if err != nil {
		return err
	}
	switch {
	case !bytes.Equal(c.Key.Marshal(), own.PublicKey().Marshal()):
		return errors.New("it is for another key")
	case c.CertType != ssh.UserCert:
		return fmt.Errorf("it is of type %d, want %d, a user certificate", c.CertType, ssh.UserCert)
	case c.KeyId != id.String() || !slices.Equal(c.ValidPrincipals, []string{id.String()}):
		return fmt.Errorf("it is for %q with the key ID %q, want %s", c.ValidPrincipals, c.KeyId, id)
	case c.ValidBefore == ssh.CertTimeInfinity:
		return errors.New("it does not expire")
	}
	// CheckCert verifies the signature, and refuses critical options.
	checker := ssh.CertChecker{Clock: func() time.Time { return time.Unix(int64(c.ValidAfter), 0) }}
	return checker.CheckCert(id.String(), c)
}

// checkAuthority returns an error unless a text consists of public keys in the form in which sshd
// reads TrustedUserCAKeys, one per line. At least one key is wanted.
func checkAuthority(text string) error {
	var lines strings.Builder
	for rest := []byte(text); len(rest) > 0; {
		key, _, _, after, err := ssh.ParseAuthorizedKey(rest)
		if err != nil {
			return err
		}
		if _, ok := key.(*ssh.Certificate); ok {
			return errors.New("a certificate, want public keys")
		}
		lines.Write(ssh.MarshalAuthorizedKey(key))
		rest = after
	}
	if text == "" || lines.String() != text {
		return errors.New("want one public key per line, without options and comment")
	}
	return nil
}
