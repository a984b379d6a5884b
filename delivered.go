package florete

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"
)

// maxDelivered limits what is read of a delivered file.
const maxDelivered = 1 << 20

// SVID is an X.509-SVID of this host with its key, as it was delivered.
type SVID struct {
	ID    ID
	Cert  tls.Certificate     // Leaf is set
	Chain []*x509.Certificate // the same, leaf first
}

// LoadSVID reads the SVID of id from the generation in force below dir, a need's, and
// checks that its key belongs to it. Whether a peer accepts it is for Check. The error is
// fs.ErrNotExist when nothing is delivered yet.
func LoadSVID(dir string, id ID) (*SVID, error) {
	gen, err := OpenCurrent(dir)
	if err != nil {
		return nil, err
	}
	defer gen.Close()
	svid, err := readDelivered(gen, FileSVID)
	if err != nil {
		return nil, err
	}
	key, err := readDelivered(gen, FileKey)
	if err != nil {
		return nil, err
	}
	s, err := ParseSVID(svid, key, id)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", dir, err)
	}
	return s, nil
}

// ParseSVID is the SVID of id in PEM, with its key.
func ParseSVID(svid, key []byte, id ID) (*SVID, error) {
	cert, err := tls.X509KeyPair(svid, key)
	if err != nil {
		return nil, err
	}
	s := &SVID{ID: id, Cert: cert, Chain: []*x509.Certificate{cert.Leaf}}
	for i, der := range cert.Certificate[1:] {
		c, err := x509.ParseCertificate(der)
		if err != nil {
			return nil, fmt.Errorf("certificate %d of the chain: %w", i+1, err)
		}
		s.Chain = append(s.Chain, c)
	}
	found, err := LeafID(s.Chain[0])
	if err != nil {
		return nil, err
	}
	if found != id {
		return nil, fmt.Errorf("certificate is of %s, want %s", found, id)
	}
	return s, nil
}

// Check refuses an SVID that peers would refuse at the given time, whichever side of a
// connection they are on. The error is that of Roots.Verify.
func (s *SVID) Check(r *Roots, at time.Time) error {
	_, err := r.Verify(s.Chain, at, x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth)
	return err
}

// Valid reports whether s can prove anything at the given time.
func (s *SVID) Valid(at time.Time) bool {
	leaf := s.Cert.Leaf
	return !at.Before(leaf.NotBefore) && !at.After(leaf.NotAfter)
}

func readDelivered(gen *os.Root, name string) ([]byte, error) {
	f, err := gen.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, maxDelivered))
}

// Delivered is what a host has of an SVID for others to see: its chain, leaf first, and the
// roots of the bundle beside it, nil for none.
type Delivered struct {
	Chain []*x509.Certificate
	Roots *Roots
}

// LoadDelivered reads the chain and the bundle of the generation in force below dir, a need's;
// nil where nothing is delivered yet.
func LoadDelivered(dir, trustDomain string) (*Delivered, error) {
	gen, err := OpenCurrent(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer gen.Close()
	svid, err := readDelivered(gen, FileSVID)
	if err != nil {
		return nil, err
	}
	d := &Delivered{}
	if d.Chain, err = ParseCertificates(svid); err != nil {
		return nil, fmt.Errorf("%s: %s: %w", dir, FileSVID, err)
	}
	bundle, err := readDelivered(gen, FileBundle)
	if errors.Is(err, fs.ErrNotExist) {
		return d, nil
	}
	if err != nil {
		return nil, err
	}
	if d.Roots, err = NewRoots(trustDomain, []string{string(bundle)}); err != nil {
		return nil, fmt.Errorf("%s: %s: %w", dir, FileBundle, err)
	}
	return d, nil
}
