package hostdir

import (
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"sync"

	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/internal/trust"
)

// maxDelivered is the maximum number of bytes that are read from a delivered file.
const maxDelivered = 1 << 20

// LoadSVID reads the SVID with the given SPIFFE ID from dir, the directory of a need, and checks
// that the private key belongs to it. It does not check whether peers accept the SVID, which
// trust.SVID.Check does. It returns fs.ErrNotExist if nothing was delivered yet.
func LoadSVID(dir string, id spiffe.ID) (*trust.SVID, error) { return (*SVIDCache)(nil).Load(dir, id) }

// SVIDCache remembers delivered SVIDs, so that they are parsed only once. The zero SVIDCache is
// empty, and a nil one remembers nothing. It is safe for concurrent use.
type SVIDCache struct{ parsed sync.Map } // values are parsedSVID, by the directory of the need

// parsedSVID is an SVID with the texts from which it was parsed.
type parsedSVID struct {
	svid, key string
	*trust.SVID
}

// Load is like LoadSVID. It reads the files each time, but parses them only if they have changed.
func (c *SVIDCache) Load(dir string, id spiffe.ID) (*trust.SVID, error) {
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
	s, err := c.Parse(dir, string(svid), string(key), id)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", dir, err)
	}
	return s, nil
}

// Parse is like trust.ParseSVID. The next Load from dir does not have to parse the SVID again.
func (c *SVIDCache) Parse(dir, svid, key string, id spiffe.ID) (*trust.SVID, error) {
	if c == nil {
		return trust.ParseSVID([]byte(svid), []byte(key), id)
	}
	if had, ok := c.parsed.Load(dir); ok {
		if had := had.(parsedSVID); had.svid == svid && had.key == key && had.ID == id {
			return had.SVID, nil
		}
	}
	s, err := trust.ParseSVID([]byte(svid), []byte(key), id)
	if err == nil {
		c.parsed.Store(dir, parsedSVID{svid, key, s})
	}
	return s, err
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
