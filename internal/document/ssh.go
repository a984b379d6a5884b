package document

import (
	"fmt"
	"time"

	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/internal/strictjson"
	"github.com/florete/florete/internal/unixtime"
)

// KindSSH is the kind of need for SSH user certificates and for the public keys that verify them.
const KindSSH = "ssh"

// Names of the files that a need of kind ssh delivers: the private key and the certificate of a
// user, in the form that ssh(1) reads as IdentityFile, or the public keys of the certificate
// authority, in the form that sshd reads as TrustedUserCAKeys.
const (
	FileSSHKey         = "id_ed25519"
	FileSSHCertificate = "id_ed25519-cert.pub"
	FileSSHAuthority   = "ca.pub"
)

// SSHExtensionNode is the name of the extension of SSH certificates that names the node to which the
// certificate was issued. When the node is revoked, its certificates are revoked with it. The
// extension is not critical, because programs that do not know it can use the certificate.
const SSHExtensionNode = "node@florete"

// SSHRequest is the request of a need of kind ssh. With an ID, it requests a user certificate for
// this identity. Without an ID, it requests the public keys that verify such certificates.
type SSHRequest struct {
	ID spiffe.ID `json:"id,omitzero"`
}

// SSH decodes the request of a need of kind ssh. It returns an error if the ID is not that of a
// user.
func (n Need) SSH() (r SSHRequest, err error) {
	if err = strictjson.Decode(n.Request, &r); err == nil && !r.ID.IsZero() && r.ID.Kind() != spiffe.KindUser {
		err = fmt.Errorf("id %q: want a user", r.ID)
	}
	if err != nil {
		err = fmt.Errorf("need %q: request: %w", n.ID, err)
	}
	return r, err
}

// Ended reports whether the permission has ended at the time now.
func (a Allow) Ended(now time.Time) bool { return ended(a.Until, now) }

// Accounts returns the accounts as which the identity may log in at the time now.
func (a Allow) Accounts(now time.Time) (accounts []string) {
	for _, l := range a.Logins {
		if !a.Ended(now) && !ended(l.Until, now) {
			accounts = append(accounts, l.Account)
		}
	}
	return accounts
}

func ended(until unixtime.Time, now time.Time) bool {
	return !until.IsZero() && !now.Before(until.Time)
}
