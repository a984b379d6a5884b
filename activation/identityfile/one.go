package identityfile

import (
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/florete/florete/activation/delivery"
	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/internal/hostdir"
	"github.com/florete/florete/internal/signers"
	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/internal/strictjson"
	"github.com/florete/florete/internal/trust"
)

// One installs the only certificate of an identity file on a machine that is not a host of the
// cluster. It writes the certificate, its key and the trust bundle to dir, in the layout in which
// activation delivers them. The identity file must be signed by signingKey, the public signing key
// of the cluster in Nix format. One returns an error if dir already contains a certificate that is
// not older.
func One(b []byte, dir, signingKey string, now time.Time) (*trust.SVID, error) {
	var signed hostapi.SignedIdentityFile
	if err := strictjson.Decode(b, &signed); err != nil {
		return nil, fmt.Errorf("identity file: %w: want a file that florctl identity issue wrote", err)
	}
	f, err := signed.Verify("", spiffe.ID{}, signers.Any(signingKey))
	if err != nil {
		return nil, err
	}
	if len(f.SVIDs) != 1 {
		return nil, fmt.Errorf("identity file: %d certificates, want one", len(f.SVIDs))
	}
	given := f.SVIDs[0]
	svid, err := trust.ParseSVID([]byte(given.SVID), []byte(given.Key), given.ID)
	if err != nil {
		return nil, fmt.Errorf("identity file: %s: %w", given.ID.Short(), err)
	}
	roots, err := trust.NewRoots(given.ID.TrustDomain(), f.Roots)
	if err != nil {
		return nil, fmt.Errorf("identity file: %w", err)
	}
	if s := f.Artifact.Revocations; s != nil {
		list, err := s.Open()
		if err == nil {
			err = s.Verify(list, f.Cluster, signers.Any(signingKey))
		}
		if err != nil {
			return nil, err
		}
		roots = roots.With(list)
	}
	if _, err := roots.Verify(svid.Chain, now, x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth); err != nil {
		return nil, fmt.Errorf("identity file: %w", err)
	}
	held, err := hostdir.LoadSVID(dir, given.ID)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: pass another directory", err)
	}
	if err == nil && !svid.Cert.Leaf.NotBefore.After(held.Cert.Leaf.NotBefore) {
		return nil, errors.New("identity file: contains nothing newer than this directory has")
	}
	var bundle []byte
	for _, r := range f.Roots {
		bundle = append(append(bundle, r...), '\n')
	}
	_, err = delivery.Dir{Path: dir}.Deliver(map[string]delivery.File{
		hostdir.FileSVID:   {Data: []byte(given.SVID), Mode: 0o444, UID: -1, GID: -1},
		hostdir.FileKey:    {Data: []byte(given.Key), Mode: 0o400, UID: -1, GID: -1},
		hostdir.FileBundle: {Data: bundle, Mode: 0o444, UID: -1, GID: -1},
	})
	return svid, err
}
