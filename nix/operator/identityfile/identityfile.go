// Package identityfile creates identity files. An identity file is for a machine that cannot fetch
// its certificates, documents and revocation list over the network. The file contains these,
// encrypted to that machine.
package identityfile

import (
	"bytes"
	"context"
	"crypto"
	"fmt"
	"io"
	"os"
	"time"

	"filippo.io/age"
	"golang.org/x/crypto/ssh"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/internal/pubkey"
	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/internal/strictjson"
	"github.com/florete/florete/internal/trust"
	"github.com/florete/florete/nix/operator/client"
	"github.com/florete/florete/nix/operator/compile"
	"github.com/florete/florete/nix/operator/published"
	"github.com/florete/florete/providers/ca"
)

// Issuing contains the options for creating an identity file, which gives a machine its
// certificates without a provider. The method Issue creates the file.
type Issuing struct {
	// Exactly one of Host, Request and ID is set. Host is the name of a host, for which new keys
	// are generated and stored in the file. Request is the path of a file with a host's request. ID
	// is the single identity of a machine that is not a host.
	Host, Request, ID string

	Device   string        // fingerprint of the host's device key, if the flake declares no key
	Lifetime time.Duration // lifetime of the certificates
	Key      published.Key
	Dir      ca.Dir // directory with the enrolment certificate and its key

	now      time.Time
	by       *ca.Authority
	manifest document.Manifest
	wanted   map[spiffe.ID]crypto.PublicKey // public keys in the request; nil if keys are generated here
	proves   ssh.PublicKey                  // SSH host key or device key of the host
	file     hostapi.IdentityFile
	record   []Issued
}

// CheckLifetime returns an error unless the lifetime d of certificates is between a minute and
// trust.MaxLifetime, as identity files require.
func CheckLifetime(d time.Duration) error {
	if d < time.Minute || d > trust.MaxLifetime {
		return fmt.Errorf("--lifetime %s: want between a minute and %s", d, trust.MaxLifetime)
	}
	return nil
}

// Issue returns a new identity file, and records the certificates in it. The file is encrypted to
// the age recipients that the function recipients returns or, if there are none, to the host
// itself. The function open returns the age identities with which to decrypt the enrolment key.
//
// The function online returns the cluster. Its providers supply the revocation list and the joined
// devices, and record the certificates in their audit log. If online is nil, no provider is called.
func (i *Issuing) Issue(ctx context.Context, src compile.Source, online func() (published.Cluster, error), open func(string) ([]age.Identity, error), recipients func() ([]age.Recipient, error)) ([]byte, error) {
	i.now = time.Now()
	read := i.read
	if i.ID != "" {
		read = i.readOne
	}
	if err := read(ctx, src); err != nil {
		return nil, err
	}
	var c published.Cluster
	if online != nil {
		var err error
		if c, err = online(); err == nil {
			err = i.compare(ctx, c)
		}
		if err != nil {
			return nil, err
		}
	}
	identities, err := open(i.Dir.Path(ca.EnrolmentKey))
	if err != nil {
		return nil, err
	}
	if i.by, err = i.Dir.LoadEnrolment(identities...); err != nil {
		return nil, err
	}
	if err := i.issue(); err != nil {
		return nil, err
	}
	to, err := recipients()
	if err == nil && len(to) == 0 {
		to, err = i.recipient()
	}
	if err != nil {
		return nil, err
	}
	sealed, err := i.seal(to)
	if err == nil {
		err = keepRecord(i.Dir, i.record)
	}
	if err != nil {
		return nil, err
	}
	if online != nil {
		if err := recordIssued(ctx, c, i.record); err != nil {
			return nil, fmt.Errorf("nothing is issued without a row in the audit log: %w", err)
		}
	}
	return sealed, nil
}

// Print prints a description of the certificates in the identity file, and the next step for the
// operator. The argument path is the place where the file was written.
func (i *Issuing) Print(w io.Writer, path string) {
	for _, r := range i.record {
		fmt.Fprintf(w, "%s: certificate %s until %s\n", r.ID.Short(), r.Serial, r.Until.UTC().Format(time.RFC3339))
	}
	if i.ID != "" {
		fmt.Fprintf(w, "%s: identity file of %s: flor identity install --out DIR --trust %s there\n", path, i.ID, i.Key.ToPublicKey())
		return
	}
	fmt.Fprintf(w, "%s: identity file of %s: flor identity install there\n", path, i.Host)
}

// read reads the request and the host's part of the flake.
func (i *Issuing) read(ctx context.Context, src compile.Source) error {
	var request hostapi.IdentityRequest
	if i.Request != "" {
		b, err := os.ReadFile(i.Request)
		if err != nil {
			return err
		}
		var signed hostapi.SignedIdentityRequest
		if err := strictjson.Decode(bytes.TrimSpace(b), &signed); err != nil {
			return fmt.Errorf("%s: %w: want what flor identity create printed", i.Request, err)
		}
		if request, i.proves, err = signed.Verify(); err != nil {
			return fmt.Errorf("%s: %w", i.Request, err)
		}
		i.Host = request.Node.Name()
	}
	c, err := compile.Compile(ctx, src, i.Host)
	if err != nil {
		return err
	}
	if err := i.Key.CheckPinned(c.Name, c.Documents); err != nil {
		return err
	}
	documents, err := i.Key.SignDocuments(c.Name, c.Documents)
	if err != nil {
		return err
	}
	for _, d := range documents[i.Host] {
		if d.Envelope.Kind == document.DocManifest {
			i.manifest = d.Manifest()
		}
		envelope, body, sig := d.Bytes()
		i.file.Artifact.Documents = append(i.file.Artifact.Documents, hostapi.SignedDocument{Envelope: string(envelope), Body: string(body), Signature: sig})
	}
	if i.Request != "" {
		err = i.requested(request)
	} else if !i.manifest.Identity.Joins {
		i.proves, err = hostapi.ParseHostKey(i.manifest.Identity.SSHHostKey)
	} else {
		err = i.makeDevice()
	}
	return err
}

// requested takes the keys from a request after checking that it is from the host.
func (i *Issuing) requested(r hostapi.IdentityRequest) error {
	m := i.manifest
	if r.Cluster != m.Cluster || r.Node != m.Identity.ID {
		return fmt.Errorf("%s: found a request of %s in cluster %.64q, want %s in %q", i.Request, r.Node, r.Cluster, m.Identity.ID, m.Cluster)
	}
	fingerprint := ssh.FingerprintSHA256(i.proves)
	switch declared, err := hostapi.ParseHostKey(m.Identity.SSHHostKey); {
	case m.Identity.Joins && i.Device == "":
		return fmt.Errorf("%s: --device FINGERPRINT: want the one that flor identity create printed on %s: whoever had the file since may have replaced it", i.Request, i.Host)
	case m.Identity.Joins && i.Device != fingerprint:
		return fmt.Errorf("%s: found a request of device %s, want %s: nothing is issued", i.Request, fingerprint, i.Device)
	case !m.Identity.Joins && err != nil:
		return err
	case !m.Identity.Joins && !bytes.Equal(declared.Marshal(), i.proves.Marshal()):
		return fmt.Errorf("%s: signed by key %s, but the flake declares %s as sshHostKey of %s", i.Request, fingerprint, ssh.FingerprintSHA256(declared), i.Host)
	}
	i.wanted = map[spiffe.ID]crypto.PublicKey{}
	for _, s := range r.SVIDs {
		key, err := ca.ParseCSR([]byte(s.CSR), s.ID)
		if err != nil {
			return fmt.Errorf("%s: %w", i.Request, err)
		}
		i.wanted[s.ID] = key
	}
	return nil
}

// makeDevice generates the device key of the host.
func (i *Issuing) makeDevice() error {
	secret, public, err := pubkey.NewSSH()
	i.proves, i.file.DeviceKey = public, string(secret)
	return err
}

// fingerprint returns the fingerprint of the host's device key. It is empty for a host whose key is
// in the flake.
func (i *Issuing) fingerprint() string {
	if !i.manifest.Identity.Joins {
		return ""
	}
	return ssh.FingerprintSHA256(i.proves)
}

// compare adds the revocation list to the file. It returns an error if the list revokes the host,
// or if the host has joined with another device than the one in the file.
func (i *Issuing) compare(ctx context.Context, c published.Cluster) error {
	list, err := c.Continued(ctx, i.Key)
	if err != nil {
		return fmt.Errorf("%w: to issue without knowing what is revoked, pass --offline", err)
	}
	if err := list.CheckID(i.manifest.Identity.ID); err != nil {
		return err
	}
	if i.proves != nil {
		if err := list.CheckKey(ssh.FingerprintSHA256(i.proves)); err != nil {
			return err
		}
	}
	if list != nil {
		signed := list.AsSigned()
		i.file.Artifact.Revocations = &signed
	}
	if !i.manifest.Identity.Joins {
		return nil
	}
	devices, err := i.devices(ctx, c)
	if err != nil {
		return err
	}
	for _, device := range devices {
		if device != i.fingerprint() && list.CheckKey(device) == nil {
			return fmt.Errorf("the device with key %s already is host %s: run flor identity create on it, or, if another device replaces it, florctl revoke --host-key %[1]s", device, i.Host)
		}
	}
	return nil
}

// devices returns the fingerprints of all current and earlier devices of the host.
func (i *Issuing) devices(ctx context.Context, c published.Cluster) (all []string, err error) {
	former, err := Record(i.Dir)
	if err != nil {
		return nil, err
	}
	for _, f := range former {
		if f.Host == i.Host && f.Device != "" {
			all = append(all, f.Device)
		}
	}
	err = c.Providers.All(func(at *client.Provider) error {
		joins, err := at.Joins(ctx)
		for _, r := range joins {
			if r.Host == i.Host && r.State == hostapi.JoinApproved {
				all = append(all, r.Fingerprint())
			}
		}
		return err
	})
	return all, err
}
