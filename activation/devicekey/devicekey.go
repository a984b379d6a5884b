// Package devicekey manages the key with which a host proves its identity if the cluster's flake
// declares no SSH host key for it. The key is held by a TPM if the machine has one, and otherwise
// stored in a file.
//
// In a TPM, the key is an ECDSA key on P-256, generated below the storage root key. The file that
// is stored for it can be used only with this TPM, and only until the TPM is cleared. A host never
// moves by itself from a key in a file to a key in a TPM, or back.
package devicekey

import (
	"crypto"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"golang.org/x/crypto/ssh"

	"github.com/florete/florete/internal/atomicfile"
	"github.com/florete/florete/internal/hostdir"
	"github.com/florete/florete/internal/pubkey"
)

// DefaultTPM is the Linux device of the TPM that several processes can use at the same time. None
// means that no TPM is used, so that keys are stored in files.
const (
	DefaultTPM = "/dev/tpmrm0"
	None       = "none"
)

// LostError is returned when the TPM of this machine cannot load the stored key. The reason is that
// the TPM was cleared, or that the disk comes from another machine.
type LostError struct {
	File, Fingerprint string
	Why               string
}

func (e *LostError) Error() string {
	return fmt.Sprintf("device key %s: %s: florctl revoke --host-key %s, then here rm %s, and flor join with another token", e.File, e.Why, e.Fingerprint, e.File)
}

// Make generates the device key of a host. If there is a TPM at the path tpm, the key is generated
// in the TPM. If there is none, or if tpm is None, the key is stored in a file. Make never replaces
// an existing key, and leaves no partial key if it fails.
func Make(l hostdir.Layout, tpm string) error {
	if _, err := os.Stat(l.DeviceKey()); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if tpm != None {
		_, err := os.Stat(tpm)
		if err == nil {
			err = makeTPM(l.TPMDeviceKey(), tpm)
			if err != nil {
				err = fmt.Errorf("TPM %s: %w: see that it works; or, for a key in a file, which can be copied: --tpm none", tpm, err)
			}
			return err
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	secret, _, err := pubkey.NewSSH()
	if err != nil {
		return err
	}
	return atomicfile.File(l.DeviceKey(), secret, 0o600)
}

// Load returns the device key of a host. A key that is held by a TPM signs with the TPM at the path
// tpm. If the host has no device key, the error is fs.ErrNotExist.
func Load(l hostdir.Layout, tpm string) (crypto.Signer, error) {
	file := l.DeviceKey()
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	if file == l.TPMDeviceKey() {
		return loadTPM(file, text, tpm)
	}
	key, err := ssh.ParseRawPrivateKey(text)
	if err != nil {
		return nil, unreadable(file, err)
	}
	signer, ok := key.(crypto.Signer)
	if !ok {
		return nil, unreadable(file, fmt.Errorf("a %T cannot sign", key))
	}
	return signer, nil
}

func unreadable(file string, err error) error {
	return fmt.Errorf("device key %s: %w: remove it, and flor join with another token", file, err)
}
