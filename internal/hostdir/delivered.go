package hostdir

import (
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/internal/trust"
)

// maxDelivered is the maximum number of bytes that are read from a delivered file.
const maxDelivered = 1 << 20

// LoadSVID reads the SVID with the given SPIFFE ID from dir, the directory of a need, and checks
// that the private key belongs to it. It does not check whether peers accept the SVID, which
// trust.SVID.Check does. It returns fs.ErrNotExist if nothing was delivered yet.
func LoadSVID(dir string, id spiffe.ID) (*trust.SVID, error) {
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
	s, err := trust.ParseSVID(svid, key, id)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", dir, err)
	}
	return s, nil
}

func readDelivered(gen *os.Root, name string) ([]byte, error) {
	f, err := gen.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, maxDelivered))
}

// Delivered is the public part of a delivered SVID. It contains the certificate chain, leaf first,
// and the root certificates from the bundle that was delivered with it, or nil if there was no
// bundle.
type Delivered struct {
	Chain []*x509.Certificate
	Roots *trust.Roots
}

// LoadDelivered reads the certificate chain and the bundle of an SVID from dir, the directory of a
// need. It returns nil without an error if nothing was delivered yet.
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
	if d.Chain, err = trust.ParseCertificates(svid); err != nil {
		return nil, fmt.Errorf("%s: %s: %w", dir, FileSVID, err)
	}
	bundle, err := readDelivered(gen, FileBundle)
	if errors.Is(err, fs.ErrNotExist) {
		return d, nil
	}
	if err != nil {
		return nil, err
	}
	if d.Roots, err = trust.NewRoots(trustDomain, []string{string(bundle)}); err != nil {
		return nil, fmt.Errorf("%s: %s: %w", dir, FileBundle, err)
	}
	return d, nil
}

// ReadDelivered returns the content of a file in the newest generation of dir, the directory of a
// need. It returns fs.ErrNotExist if nothing was delivered yet.
func ReadDelivered(dir, name string) ([]byte, error) {
	gen, err := OpenCurrent(dir)
	if err != nil {
		return nil, err
	}
	defer gen.Close()
	return readDelivered(gen, name)
}
