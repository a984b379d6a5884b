package hostdir

import (
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/florete/florete/internal/document"
)

// Layout is the directory with the state of a host (Instance.State). Activation writes it, all
// other programs only read:
//
//	documents/gen-N/{manifest,policy}.{json,envelope.json,sig}
//	documents/current -> gen-N
//	documents-copy/                 as documents
//	documents.lock
//	needs/<id>/gen-N/<file>
//	needs/<id>/current -> gen-N
//	needs/<id>/state.json
//	activation.json
//	activation.lock
//	stopped
//	closure-error.json
//	commit.json
//	undone.json
//	hold.json
//	revocations.json
//	witnessed.json
//	accepted.json
//	crl.pem
//	join/{device.key or device.tpm,request.json,admission.json,keys.json,identity.json}
type Layout string

// Files of a delivered SVID.
const (
	FileSVID   = "svid.pem"   // leaf, then intermediates
	FileKey    = "key.pem"    // PKCS #8, generated on this host
	FileBundle = "bundle.pem" // roots of the trust domain
)

// Documents returns the directory with the accepted documents.
func (l Layout) Documents() string { return filepath.Join(string(l), "documents") }

// DocumentsCopy returns the directory with a second copy of the accepted documents.
func (l Layout) DocumentsCopy() string { return filepath.Join(string(l), "documents-copy") }

// DocumentsLock returns the file that is locked while documents change. ActivationLock returns the
// file that activation keeps locked. Stopped returns the file that activation writes when it is
// stopped in order; it contains the boot_id.
func (l Layout) DocumentsLock() string  { return filepath.Join(string(l), "documents.lock") }
func (l Layout) ActivationLock() string { return filepath.Join(string(l), "activation.lock") }
func (l Layout) Stopped() string        { return filepath.Join(string(l), "stopped") }

// Need returns the directory of one need.
func (l Layout) Need(id string) string { return filepath.Join(string(l), "needs", id) }

// Manifest returns the manifest in force. It returns fs.ErrNotExist if there is none yet.
func (l Layout) Manifest() (document.Document, error) { return l.Refresh(document.Document{}) }

// Refresh is like Manifest for a caller that already has old. It decodes nothing if old is still in
// force.
func (l Layout) Refresh(old document.Document) (document.Document, error) {
	return document.Reread(old, Current(l.Documents()), document.DocManifest)
}

// Revocations returns the file of the revocation list. The list is not part of a generation of
// documents, so it is never rolled back with them.
func (l Layout) Revocations() string { return filepath.Join(string(l), "revocations.json") }

// DeviceKey returns the file of the private key that proves this host if the flake declares no SSH
// host key. If a TPM generated the key, it is TPMDeviceKey, which only that TPM can load.
func (l Layout) DeviceKey() string {
	if l.DeviceKeyIn() == InTPM {
		return l.TPMDeviceKey()
	}
	return l.fileDeviceKey()
}
func (l Layout) TPMDeviceKey() string  { return filepath.Join(string(l), "join", "device.tpm") }
func (l Layout) fileDeviceKey() string { return filepath.Join(string(l), "join", "device.key") }

// Storage of a device key.
const (
	InTPM  = "tpm"
	InFile = "file"
)

// DeviceKeyIn returns the storage of the device key, InTPM or InFile, or "" if there is none.
func (l Layout) DeviceKeyIn() string {
	if _, err := os.Lstat(l.TPMDeviceKey()); err == nil {
		return InTPM
	}
	if _, err := os.Lstat(l.fileDeviceKey()); err == nil {
		return InFile
	}
	return ""
}

// Admission returns the file of the operator's admission of the device key. JoinRequest returns the
// file of the pending join request. They are not rolled back with documents.
func (l Layout) Admission() string   { return filepath.Join(string(l), "join", "admission.json") }
func (l Layout) JoinRequest() string { return filepath.Join(string(l), "join", "request.json") }

// IdentityKeys returns the file of the private keys for which flor id create requests certificates.
// IdentityFile returns the file that flor enroll verified, until activation has delivered its
// content.
func (l Layout) IdentityKeys() string { return filepath.Join(string(l), "join", "keys.json") }
func (l Layout) IdentityFile() string { return filepath.Join(string(l), "join", "identity.json") }

// NeedStateFile returns the file in which activation keeps the state of a need.
func (l Layout) NeedStateFile(id string) string { return filepath.Join(l.Need(id), "state.json") }

// Provided lists the processes that a host runs by its policy.
type Provided struct {
	Kinds       []string // kinds of need, sorted
	StoreMember bool     // whether it runs a member of the shared store
}

// Provides returns the processes that this host runs by the policy in force. It is empty without a
// policy.
func (l Layout) Provides() Provided {
	d, err := document.Read(Current(l.Documents()), document.DocPolicy)
	if err != nil {
		return Provided{}
	}
	p := d.Policy()
	return Provided{slices.Sorted(maps.Keys(p.Provider)), p.Store != nil && p.Store.Member != nil}
}

// State returns the file in which activation keeps its state of the documents.
func (l Layout) State() string { return filepath.Join(string(l), "activation.json") }

// Current returns the symlink to the current generation below dir.
func Current(dir string) string { return filepath.Join(dir, "current") }

// OpenCurrent opens the current generation below dir. Files read through it are of one generation,
// even if a new one is delivered meanwhile. It returns fs.ErrNotExist if there is none yet.
func OpenCurrent(dir string) (*os.Root, error) { return os.OpenRoot(Current(dir)) }
