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

// LostError means that the TPM of this machine cannot use the stored key. This happens if the TPM
// was cleared, or if the disk was moved from another machine.
type LostError struct {
	File, Fingerprint string
	Why               string
}

func (e *LostError) Error() string {
	return fmt.Sprintf("device key %s: %s: florctl revoke --host-key %s, then here rm %s, and flor join with another token", e.File, e.Why, e.Fingerprint, e.File)
}

// Make generates the device key of a host. If a TPM is found at the path given by tpm, the TPM
// holds the key. Otherwise the key is stored in a file. Make never replaces an existing key, and
// leaves no incomplete key if it fails.
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

// Load returns the device key of a host. If the key is held by a TPM, it signs with the TPM at the
// path given by tpm. The error is fs.ErrNotExist if the host has no device key.
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
