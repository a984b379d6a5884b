package identity

import (
	"crypto/tls"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/florete/florete"
)

// maxFile limits what is read of a delivered file.
const maxFile = 1 << 20

// SVID is an X.509-SVID with its key. A renewed one is another *SVID.
type SVID struct {
	ID   florete.ID
	Cert tls.Certificate // Leaf is set
}

// Valid tells whether s can prove anything at the given time.
func (s *SVID) Valid(at time.Time) bool {
	leaf := s.Cert.Leaf
	return !at.Before(leaf.NotBefore) && !at.After(leaf.NotAfter)
}

func (s *SVID) equal(o *SVID) bool { return o != nil && s.Cert.Leaf.Equal(o.Cert.Leaf) }

// load reads the SVID of id from the generation in force of a need. The error is
// fs.ErrNotExist when nothing is delivered yet.
func load(trust *florete.Roots, dir string, id florete.ID) (*SVID, error) {
	gen, err := florete.OpenCurrent(dir)
	if err != nil {
		return nil, err
	}
	defer gen.Close()
	chain, err := read(gen, florete.FileSVID)
	if err != nil {
		return nil, err
	}
	key, err := read(gen, florete.FileKey)
	if err != nil {
		return nil, err
	}
	cert, err := tls.X509KeyPair(chain, key)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", dir, err)
	}
	if err := check(trust, cert, id); err != nil {
		return nil, fmt.Errorf("%s: %w", dir, err)
	}
	return &SVID{ID: id, Cert: cert}, nil
}

func read(gen *os.Root, name string) ([]byte, error) {
	f, err := gen.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, maxFile))
}
