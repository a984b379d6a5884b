package devicekey

import (
	"bytes"
	"crypto/ecdsa"
	"encoding/asn1"
	"encoding/pem"
	"errors"
	"fmt"

	"github.com/google/go-tpm/tpm2"
)

// typeTPM is the PEM type of files with TPM keys. Their format is defined in "ASN.1 Specification
// for TPM 2.0 Key Files" (draft-bottomley-tpm2-keys), so the TPM provider of OpenSSL can read them
// too.
const typeTPM = "TSS2 PRIVATE KEY"

// loadable is the object identifier of a key that only the TPM that exported it can load.
var loadable = asn1.ObjectIdentifier{2, 23, 133, 10, 1, 3}

// keyFile is the ASN.1 type TPMKey of that specification. It contains only the fields that are used
// here.
type keyFile struct {
	Type      asn1.ObjectIdentifier
	EmptyAuth bool `asn1:"explicit,optional,tag:0"`
	Parent    int64
	Public    []byte // TPM2B_PUBLIC
	Private   []byte // TPM2B_PRIVATE, encrypted
}

// blob is the public and the private part of a key, in the form in which a TPM loads them.
type blob struct {
	Public2B tpm2.TPM2BPublic
	Private  tpm2.TPM2BPrivate
}

func encode(public tpm2.TPM2BPublic, private tpm2.TPM2BPrivate) ([]byte, error) {
	der, err := asn1.Marshal(keyFile{loadable, true, int64(tpm2.TPMRHOwner), tpm2.Marshal(public), tpm2.Marshal(private)})
	return pem.EncodeToMemory(&pem.Block{Type: typeTPM, Bytes: der}), err
}

func decode(text []byte) (b blob, public *ecdsa.PublicKey, err error) {
	block, rest := pem.Decode(text)
	if block == nil || block.Type != typeTPM || len(bytes.TrimSpace(rest)) > 0 {
		return b, nil, fmt.Errorf("no TPM key file: want one PEM block %q", typeTPM)
	}
	var f keyFile
	if rest, err := asn1.Unmarshal(block.Bytes, &f); err != nil || len(rest) > 0 {
		return b, nil, errors.New("no TPM key file: not a TPMKey")
	}
	if !f.Type.Equal(loadable) || !f.EmptyAuth || f.Parent != int64(tpm2.TPMRHOwner) {
		return b, nil, errors.New("TPM key file: want a loadable key below the storage root key, without a password")
	}
	pub, err := tpm2.Unmarshal[tpm2.TPM2BPublic](f.Public)
	if err != nil {
		return b, nil, fmt.Errorf("TPM key file: public key: %w", err)
	}
	private, err := tpm2.Unmarshal[tpm2.TPM2BPrivate](f.Private)
	if err != nil {
		return b, nil, fmt.Errorf("TPM key file: private key: %w", err)
	}
	public, err = publicKey(pub)
	return blob{*pub, *private}, public, err
}

func publicKey(p *tpm2.TPM2BPublic) (*ecdsa.PublicKey, error) {
	contents, err := p.Contents()
	if err != nil {
		return nil, fmt.Errorf("TPM key file: public key: %w", err)
	}
	key, err := tpm2.Pub(*contents)
	if err != nil {
		return nil, fmt.Errorf("TPM key file: public key: %w", err)
	}
	ec, ok := key.(*ecdsa.PublicKey)
	if !ok {
		return nil, fmt.Errorf("TPM key file: a %T, want ECDSA", key)
	}
	if _, err := ec.ECDH(); err != nil { // checks that the point is on the curve
		return nil, fmt.Errorf("TPM key file: public key: %w", err)
	}
	return ec, nil
}
