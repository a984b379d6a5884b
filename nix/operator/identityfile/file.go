package identityfile

import (
	"cmp"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"filippo.io/age"
	"golang.org/x/crypto/ssh"

	"github.com/florete/florete/internal/agefile"
	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/internal/trust"
	"github.com/florete/florete/internal/unixtime"
	"github.com/florete/florete/providers/ca"
)

// issue creates the content of the file and the record of its certificates. It checks that hosts
// will accept all of the content.
func (i *Issuing) issue() error {
	m := i.manifest
	roots, err := trust.NewRoots(m.TrustDomain, m.Trust.Roots)
	if err != nil {
		return err
	}
	if err := roots.CheckIssuing(i.by.Certificate, i.now); err != nil {
		return fmt.Errorf("%s: %w: sign it with the root in the flake: florctl ca enrolment", i.Dir.Path(ca.EnrolmentCertificate), err)
	}
	if s := i.file.Artifact.Revocations; s != nil {
		list, err := s.Open()
		if err != nil {
			return err
		}
		roots = roots.With(list)
	}
	i.file.Schema, i.file.Format, i.file.Cluster, i.file.Node = hostapi.IdentityFileSchema, document.NewestFormat, m.Cluster, m.Identity.ID
	device := i.fingerprint()
	if device != "" {
		if err := i.Key.CheckAlone("admission of "+m.Identity.ID.Short(), m.Trust.Signers()); err != nil {
			return fmt.Errorf("%w: write the sshHostKey of %s in the flake, or let it join over the network, with florctl join approve", err, i.Host)
		}
		line := strings.TrimSpace(string(ssh.MarshalAuthorizedKey(i.proves)))
		text, sig, err := i.Key.SignJSON(trust.NewAdmission(m.Cluster, m.Identity.ID, line, i.now), trust.AdmissionText)
		if err != nil {
			return err
		}
		i.file.Admission = &trust.SignedAdmission{Admission: text, Signature: sig}
	}
	granted := map[spiffe.ID]bool{}
	for _, n := range m.Needs {
		if n.Kind != document.KindCert {
			continue
		}
		id, err := n.CertID()
		if err != nil {
			return err
		}
		granted[id] = true
		if i.wanted != nil && i.wanted[id] == nil {
			continue // the host has it from other documents
		}
		if err := i.issueOne(roots, id, device); err != nil {
			return err
		}
	}
	for id := range i.wanted {
		if !granted[id] {
			return fmt.Errorf("%s: requests %s, which the flake does not give %s: deploy the newest documents to the host, and run flor identity create again", i.Request, id, i.Host)
		}
	}
	if len(i.record) == 0 {
		return errors.New("no certificate to issue: deploy the newest documents to the host, and run flor identity create again")
	}
	return nil
}

func (i *Issuing) issueOne(roots *trust.Roots, id spiffe.ID, device string) error {
	s := hostapi.IdentitySVID{ID: id}
	public := i.wanted[id]
	if public == nil {
		key, err := ca.NewKey()
		if err != nil {
			return err
		}
		pem, err := ca.EncodeKey(key)
		if err != nil {
			return err
		}
		public, s.Key = key.Public(), string(pem)
	}
	leaf, err := i.by.Issue(ca.SVID{ID: id, Node: i.Host, Device: device, Key: public, Until: i.now.Add(i.Lifetime)}, i.now)
	if err != nil {
		return err
	}
	chain := []*x509.Certificate{leaf, i.by.Certificate}
	if _, err := roots.Verify(chain, i.now); err != nil {
		return fmt.Errorf("%w: nothing is issued", err)
	}
	s.SVID = string(ca.EncodeCertificates(chain...))
	i.file.SVIDs = append(i.file.SVIDs, s)
	i.record = append(i.record, Issued{unixtime.Of(i.now), i.Host, id, trust.SerialNumber(leaf), unixtime.Of(leaf.NotAfter), device})
	return nil
}

// recipient returns the host's own key as an age recipient, if the host already has a key with
// which it can prove its identity.
func (i *Issuing) recipient() ([]age.Recipient, error) {
	if i.proves == nil || i.file.DeviceKey != "" {
		return nil, fmt.Errorf("%s has no key yet to encrypt the file to: pass --passphrase, --passphrase-file FILE or --seal-to RECIPIENT", cmp.Or(i.Host, i.ID))
	}
	if t := i.proves.Type(); t != ssh.KeyAlgoED25519 && t != ssh.KeyAlgoRSA {
		return nil, fmt.Errorf("%s has a key of type %s, such as a key in a TPM, which cannot decrypt files: pass --passphrase, --passphrase-file FILE or --seal-to RECIPIENT", i.Host, t)
	}
	r, err := agefile.Recipient(strings.TrimSpace(string(ssh.MarshalAuthorizedKey(i.proves))))
	if err != nil {
		return nil, fmt.Errorf("SSH host key of %s: %w: pass --passphrase, --passphrase-file FILE or --seal-to RECIPIENT", i.Host, err)
	}
	return []age.Recipient{r}, nil
}

// seal signs the file and encrypts the result.
func (i *Issuing) seal(to []age.Recipient) ([]byte, error) {
	text, sig, err := i.Key.SignJSON(i.file, hostapi.IdentityFileText)
	if err != nil {
		return nil, err
	}
	b, err := json.Marshal(hostapi.SignedIdentityFile{File: text, Signature: sig})
	if err != nil {
		return nil, err
	}
	return agefile.Seal(b, to)
}
