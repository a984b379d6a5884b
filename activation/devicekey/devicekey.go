// Package devicekey manages the key that identifies a host for which the flake declares no SSH host
// key. A TPM holds the key if the machine has one; otherwise it is in a file.
//
// The TPM generates an ECDSA key on P-256 below its storage root key. The stored file is useless to
// another TPM, and to the same TPM after it is cleared. A host never moves by itself from a key in
// a file to a key in a TPM, or back.
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

// DefaultTPM is the Linux device of a TPM that several processes share. None stands for no TPM:
// keys are in files.
const (
	DefaultTPM = "/dev/tpmrm0"
	None       = "none"
)

// LostError is the error for a key that the TPM of this machine cannot use, for example because the
// TPM was cleared or the disk comes from another machine.
type LostError struct {
	File, Fingerprint string
	Why               string
}

func (e *LostError) Error() string {
	return fmt.Sprintf("device key %s: %s: florctl revoke --host-key %s, then here rm %s, and flor join with another token", e.File, e.Why, e.Fingerprint, e.File)
}

// Make generates the device key of a host. If there is a TPM at the path tpm, the TPM holds the
// key. Make never replaces an existing key, and leaves no incomplete key if it fails.
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

// Load returns the device key of a host. If a TPM holds the key, it signs with the TPM at the path
// tpm. The error is fs.ErrNotExist if the host has no device key.
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
