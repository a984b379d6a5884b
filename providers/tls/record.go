package tls

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"hash/fnv"
	"time"

	"github.com/florete/florete/providers/sealedstore"
	"github.com/florete/florete/providers/server"
	"github.com/florete/florete/providers/store"
)

// prefix is the beginning of the keys of sealed certificates.
const prefix = "tls/certs/"

// record is the stored record of an issued certificate.
type record struct {
	Generation int    `json:"generation"`
	Chain      string `json:"chain"`         // PEM, the leaf first
	Key        string `json:"key,omitempty"` // PEM, where hosts share it
	Public     string `json:"public"`        // fingerprint of the key
	Serial     string `json:"serial"`
	Ends       int64  `json:"ends"`  // Unix seconds, as the others
	Renew      int64  `json:"renew"` // since when another one is due
	Look       int64  `json:"look"`  // when the CA is requested again whether it is earlier
}

// newRecord returns the record of a certificate chain in PEM.
func newRecord(chain string, w wanted, now time.Time) (*record, error) {
	leaf, err := leafOf(chain)
	if err != nil {
		return nil, err
	}
	for _, n := range w.Names {
		host := n
		if n[0] == '*' {
			host = "any" + n[1:]
		}
		if err := leaf.VerifyHostname(host); err != nil {
			return nil, fmt.Errorf("the CA issued something else: %w", err)
		}
	}
	return &record{
		Generation: w.generation, Chain: chain, Public: fingerprint(leaf.RawSubjectPublicKeyInfo), Serial: leaf.SerialNumber.Text(16),
		Ends: leaf.NotAfter.Unix(), Renew: leaf.NotBefore.Add(leaf.NotAfter.Sub(leaf.NotBefore) * 2 / 3).Unix(), Look: now.Unix(),
	}, nil
}

func leafOf(chain string) (*x509.Certificate, error) {
	block, _ := pem.Decode([]byte(chain))
	if block == nil {
		return nil, errors.New("certificate: no PEM block")
	}
	return x509.ParseCertificate(block.Bytes)
}

// serves reports whether the certificate is the one that a call requests. It ignores when the
// certificate expires.
func (r record) serves(w wanted) bool {
	if w.csr != nil {
		return r.Public == fingerprint(w.csr.RawSubjectPublicKeyInfo)
	}
	return r.Key != "" && r.Generation >= w.generation
}

// within returns a time between start and end. It is always the same for one certificate, but
// differs between certificates. Certificates that were issued in the same hour are therefore not
// renewed all at once.
func (r record) within(start, end time.Time) int64 {
	h := fnv.New64a()
	fmt.Fprint(h, r.Serial)
	if span := end.Unix() - start.Unix(); span > 0 {
		return start.Unix() + int64(h.Sum64()%uint64(span))
	}
	return start.Unix()
}

// newKey makes the private key of a certificate that several hosts share, and the certificate
// request.
func newKey(names []string) (key string, csr *x509.CertificateRequest, err error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return "", nil, err
	}
	der, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		return "", nil, err
	}
	b, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{DNSNames: names}, private)
	if err != nil {
		return "", nil, err
	}
	csr, err = x509.ParseCertificateRequest(b)
	return string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})), csr, err
}

// records reads and writes the certificates in a store.
type records struct {
	db  store.Store
	key *sealedstore.Key
}

// read reads the record under a key, and the revision that wrote it. If there is no record, it
// returns nil.
func (s records) read(ctx context.Context, key string) (*record, int64, error) {
	var r *record
	revision, err := s.key.Load(ctx, s.db, key, &r)
	return r, revision, err
}

// write returns the decision that replaces the record with the given revision.
func (s records) write(key string, revision int64, r *record) (server.Decision, error) {
	op, err := s.key.Put(key, r)
	return server.Decision{If: []store.Cond{{Key: key, Modified: revision}}, Then: []store.Op{op}}, err
}
