package sshlogin

import (
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/florete/florete/internal/accessgrant"
	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostdir"
	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/internal/trust"
)

// Principal returns the identity of a certificate, if the manifest in force permits this identity to
// log in as the account, and the revocation list in force does not revoke the certificate. The
// argument certificate is the certificate in base64, as sshd passes it. Otherwise Principal returns
// an error with the reason. The result recorded reports whether one of the services that permit the
// login records sessions.
//
// Principal does not verify the signature and the validity period of the certificate. sshd verifies
// that a key in TrustedUserCAKeys signed the certificate before it asks, and the validity period
// and the possession of the private key afterwards.
func Principal(l hostdir.Layout, account, certificate string, now time.Time) (id spiffe.ID, recorded bool, err error) {
	doc, err := l.Manifest()
	if err != nil {
		return id, false, fmt.Errorf("manifest: %w", err)
	}
	m := doc.Manifest()
	c, err := parse(certificate, m.TrustDomain)
	if err != nil {
		return id, false, fmt.Errorf("certificate: %w", err)
	}
	list, err := trust.ReadRevocations(l.Revocations(), nil)
	if err != nil {
		return id, false, err
	}
	services, err := permitting(l, m, list, c.id, account, now)
	if err == nil {
		err = list.CheckIssued(c.id, c.node, c.issued)
	}
	if err != nil {
		return id, false, err
	}
	return c.id, slices.ContainsFunc(services, func(p document.Published) bool { return p.Record != nil }), nil
}

// Permitted returns an error unless the manifest m, or an access grant in force, permits an identity
// to log in as an account at a service of this host.
func Permitted(l hostdir.Layout, m document.Manifest, id spiffe.ID, account string, now time.Time) error {
	list, err := trust.ReadRevocations(l.Revocations(), nil)
	if err == nil {
		_, err = permitting(l, m, list, id, account, now)
	}
	return err
}

// permitting returns the services of this host at which an identity may log in as an account. If
// there are none, it returns an error.
func permitting(l hostdir.Layout, m document.Manifest, list *trust.Revocations, id spiffe.ID, account string, now time.Time) (services []document.Published, err error) {
	held, err := accessgrant.Read(l.AccessGrants())
	if err != nil {
		return nil, err
	}
	for _, p := range accessgrant.Apply(m.Forwarder, held.InForce(m, list, now)).Publish {
		if slices.ContainsFunc(p.Allow, func(a document.Allow) bool { return a.ID == id && slices.Contains(a.Accounts(now), account) }) {
			services = append(services, p)
		}
	}
	if services == nil {
		err = fmt.Errorf("%s has no login as %s on this host: write it into a role of the user, roles.<name>.logins", id.Short(), account)
	}
	return services, err
}

// userCertificate is the content of a certificate that a provider issued to a user.
type userCertificate struct {
	id     spiffe.ID
	node   string // node that requested the certificate
	issued time.Time
}

// parse decodes a user certificate in base64. It returns an error for a certificate that providers
// of the trust domain do not issue.
func parse(certificate, trustDomain string) (u userCertificate, err error) {
	wire, err := base64.StdEncoding.DecodeString(certificate)
	if err != nil {
		return u, err
	}
	key, err := ssh.ParsePublicKey(wire)
	if err != nil {
		return u, err
	}
	c, ok := key.(*ssh.Certificate)
	if !ok {
		return u, fmt.Errorf("it is a plain key of type %s", key.Type())
	}
	if c.CertType != ssh.UserCert {
		return u, errors.New("it is not a user certificate")
	}
	if u.id, err = spiffe.ParseID(c.KeyId); err != nil {
		return u, fmt.Errorf("key ID: %w", err)
	}
	if !slices.Equal(c.ValidPrincipals, []string{c.KeyId}) {
		return u, fmt.Errorf("principals %q, want only the key ID %q", c.ValidPrincipals, c.KeyId)
	}
	if u.id.Kind() != spiffe.KindUser || u.id.TrustDomain() != trustDomain {
		return u, fmt.Errorf("%s is not a user of %s", u.id, trustDomain)
	}
	u.node = c.Extensions[document.SSHExtensionNode]
	if _, err := spiffe.NewID(trustDomain, spiffe.KindNode, "", u.node); err != nil {
		return u, fmt.Errorf("extension %s: %w", document.SSHExtensionNode, err)
	}
	if c.ValidAfter >= c.ValidBefore || c.ValidBefore > 1<<62 {
		return u, fmt.Errorf("valid from %d to %d, want both times", c.ValidAfter, c.ValidBefore)
	}
	u.issued = time.Unix(int64(c.ValidAfter), 0).Add(trust.Backdated)
	return u, nil
}

// NamesAccount reports whether a manifest names an account of this host for logins, now or while an
// access grant is in force.
func NamesAccount(m document.Manifest, account string) bool {
	return slices.ContainsFunc(m.Forwarder.Publish, func(p document.Published) bool {
		return slices.ContainsFunc(p.Allow, func(a document.Allow) bool {
			return slices.ContainsFunc(a.Logins, func(l document.Login) bool { return l.Account == account })
		}) || slices.ContainsFunc(p.Latent, func(l document.Latent) bool { return slices.Contains(l.Logins, account) })
	})
}

// Records reports whether a service of this host records sessions.
func Records(m document.Manifest) bool {
	return slices.ContainsFunc(m.Forwarder.Publish, func(p document.Published) bool { return p.Record != nil })
}
