package devicekey

import (
	"crypto"
	"crypto/ecdsa"
	"encoding/asn1"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/big"
	"os"

	"github.com/google/go-tpm/tpm2"
	"github.com/google/go-tpm/tpm2/transport"
	"github.com/google/go-tpm/tpm2/transport/linuxtpm"
	"github.com/google/go-tpm/tpm2/transport/linuxudstpm"
	"golang.org/x/crypto/ssh"
	"golang.org/x/sys/unix"

	"github.com/florete/florete/internal/atomicfile"
)

// template describes device keys to the TPM: they sign only SHA-256 digests and cannot leave the
// TPM.
var template = tpm2.TPMTPublic{
	Type: tpm2.TPMAlgECC, NameAlg: tpm2.TPMAlgSHA256,
	ObjectAttributes: tpm2.TPMAObject{
		FixedTPM: true, FixedParent: true, SensitiveDataOrigin: true, UserWithAuth: true, NoDA: true, SignEncrypt: true,
	},
	Parameters: tpm2.NewTPMUPublicParms(tpm2.TPMAlgECC, &tpm2.TPMSECCParms{
		CurveID: tpm2.TPMECCNistP256,
		Scheme: tpm2.TPMTECCScheme{
			Scheme:  tpm2.TPMAlgECDSA,
			Details: tpm2.NewTPMUAsymScheme(tpm2.TPMAlgECDSA, &tpm2.TPMSSigSchemeECDSA{HashAlg: tpm2.TPMAlgSHA256}),
		},
	}),
}

// open opens the TPM at a path, which is either a device or the Unix socket of a software TPM.
func open(path string) (transport.TPMCloser, error) {
	fi, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if fi.Mode()&fs.ModeSocket != 0 {
		return linuxudstpm.Open(path)
	}
	return linuxtpm.Open(path)
}

// under calls f with the storage root key of a TPM, below which device keys are generated. The TPM
// derives this key from the standard template of the Trusted Computing Group (TCG), and gets the
// same key until it is cleared.
func under(t transport.TPM, f func(root tpm2.NamedHandle) error) error {
	root, err := tpm2.CreatePrimary{PrimaryHandle: tpm2.TPMRHOwner, InPublic: tpm2.New2B(tpm2.ECCSRKTemplate)}.Execute(t)
	if err != nil {
		return fmt.Errorf("storage root key: %w", err)
	}
	err = f(tpm2.NamedHandle{Handle: root.ObjectHandle, Name: root.Name})
	return errors.Join(err, flush(t, root.ObjectHandle))
}

func flush(t transport.TPM, h tpm2.TPMHandle) error {
	_, err := tpm2.FlushContext{FlushHandle: h}.Execute(t)
	return err
}

// makeTPM generates a key in a TPM and writes the file from which the TPM can load it.
func makeTPM(file, tpm string) error {
	t, err := open(tpm)
	if err != nil {
		return err
	}
	defer t.Close()
	var made *tpm2.CreateResponse
	err = under(t, func(root tpm2.NamedHandle) (err error) {
		made, err = tpm2.Create{ParentHandle: root, InPublic: tpm2.New2B(template)}.Execute(t)
		return err
	})
	if err != nil {
		return err
	}
	text, err := encode(made.OutPublic, made.OutPrivate)
	if err != nil {
		return err
	}
	return atomicfile.File(file, text, 0o600)
}

// tpmKey is a key that is held by a TPM. It implements crypto.Signer.
type tpmKey struct {
	blob
	file, tpm string
	public    *ecdsa.PublicKey
}

func loadTPM(file string, text []byte, tpm string) (crypto.Signer, error) {
	b, public, err := decode(text)
	if err != nil {
		return nil, unreadable(file, err)
	}
	return &tpmKey{b, file, tpm, public}, nil
}

// Public returns the public key, as an *ecdsa.PublicKey.
func (k *tpmKey) Public() crypto.PublicKey { return k.public }

// Sign signs a SHA-256 digest with the TPM and returns an ASN.1 ECDSA signature. A file lock
// ensures that only one process signs at a time, because a TPM without a resource manager has room
// for only three keys. If the TPM was cleared, or the key belongs to another TPM, the error is a
// *LostError.
func (k *tpmKey) Sign(_ io.Reader, digest []byte, opts crypto.SignerOpts) ([]byte, error) {
	if opts.HashFunc() != crypto.SHA256 || len(digest) != crypto.SHA256.Size() {
		return nil, fmt.Errorf("device key %s: signs SHA-256, not %s", k.file, opts.HashFunc())
	}
	f, err := os.Open(k.file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX); err != nil {
		return nil, fmt.Errorf("%s: %w", k.file, err)
	}
	sig, err := k.sign(digest)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		// Not a LostError, because the driver may be loaded later.
		err = errors.New(k.lost(fmt.Sprintf("held by a TPM, and there is none at %s: turn it on in the firmware; where it is gone for good", k.tpm)).Error())
	case errors.Is(err, tpm2.TPMRCIntegrity):
		err = k.lost("held by another machine's TPM, or by this one before it was cleared")
	case err != nil:
		err = fmt.Errorf("device key %s: TPM %s: %w", k.file, k.tpm, err)
	}
	return sig, err
}

func (k *tpmKey) lost(why string) error {
	public, err := ssh.NewPublicKey(k.public)
	if err != nil {
		return err
	}
	return &LostError{k.file, ssh.FingerprintSHA256(public), why}
}

func (k *tpmKey) sign(digest []byte) ([]byte, error) {
	t, err := open(k.tpm)
	if err != nil {
		return nil, err
	}
	defer t.Close()
	var key *tpm2.LoadResponse
	err = under(t, func(root tpm2.NamedHandle) (err error) {
		key, err = tpm2.Load{ParentHandle: root, InPublic: k.Public2B, InPrivate: k.Private}.Execute(t)
		return err
	})
	if err != nil {
		return nil, err
	}
	made, err := tpm2.Sign{
		KeyHandle:  tpm2.NamedHandle{Handle: key.ObjectHandle, Name: key.Name},
		Digest:     tpm2.TPM2BDigest{Buffer: digest},
		InScheme:   tpm2.TPMTSigScheme{Scheme: tpm2.TPMAlgNull},
		Validation: tpm2.TPMTTKHashCheck{Tag: tpm2.TPMSTHashCheck},
	}.Execute(t)
	if err = errors.Join(err, flush(t, key.ObjectHandle)); err != nil {
		return nil, err
	}
	sig, err := made.Signature.Signature.ECDSA()
	if err != nil {
		return nil, err
	}
	return asn1.Marshal(struct{ R, S *big.Int }{new(big.Int).SetBytes(sig.SignatureR.Buffer), new(big.Int).SetBytes(sig.SignatureS.Buffer)})
}
