package hostdir

import (
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/florete/florete/internal/document"
)

// Layout is the path of the directory in which a host keeps its state (Instance.State). Its methods
// return the paths of the files in the directory. Activation writes these files, and all other
// programs only read them:
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
//	change.json
//	undone.json
//	hold.json
//	revocations.json
//	access-grants.json
//	witnessed.json
//	accepted.json
//	crl.pem
//	join/{device.key or device.tpm,request.json,admission.json,keys.json,identity.json}
type Layout string

// Names of the files in which an SVID is delivered.
const (
	FileSVID   = "svid.pem"   // leaf, then intermediates
	FileKey    = "key.pem"    // PKCS #8, generated on this host
	FileBundle = "bundle.pem" // roots of the trust domain
)

// Documents returns the directory with the documents that the host accepted.
func (l Layout) Documents() string { return filepath.Join(string(l), "documents") }

// DocumentsCopy returns the directory with a second copy of the accepted documents, which is used
// if the first copy is damaged.
func (l Layout) DocumentsCopy() string { return filepath.Join(string(l), "documents-copy") }

// DocumentsLock returns the path of the file that is locked while documents change. ActivationLock
// returns the path of the file that activation keeps locked while it runs. Stopped returns the path
// of the file that activation writes when it is stopped in the regular way; the file contains the
// kernel's boot_id.
func (l Layout) DocumentsLock() string  { return filepath.Join(string(l), "documents.lock") }
func (l Layout) ActivationLock() string { return filepath.Join(string(l), "activation.lock") }
func (l Layout) Stopped() string        { return filepath.Join(string(l), "stopped") }

// Need returns the directory with the files and the state of the need with this ID.
func (l Layout) Need(id string) string { return filepath.Join(string(l), "needs", id) }

// Manifest reads the manifest in force on the host. It returns fs.ErrNotExist if there is none yet.
func (l Layout) Manifest() (document.Document, error) { return l.Refresh(document.Document{}) }

// Refresh reads the manifest in force like Manifest, but returns old if that is still in force.
// This avoids the cost of decoding it again.
func (l Layout) Refresh(old document.Document) (document.Document, error) {
	return document.Reread(old, Current(l.Documents()), document.DocManifest)
}

// Revocations returns the path of the file with the cluster's revocation list. The list is kept
// apart from the documents, so that it is never rolled back with them.
func (l Layout) Revocations() string { return filepath.Join(string(l), "revocations.json") }

// AccessGrants returns the path of the file with the access grants that the host received. It is not
// rolled back with documents.
func (l Layout) AccessGrants() string { return filepath.Join(string(l), "access-grants.json") }

// DeviceKey returns the path of the file with the private device key. The host proves its identity
// with this key if the flake declares no SSH host key for it. If a TPM has generated the key, this
// is TPMDeviceKey, and only this TPM can load the key.
func (l Layout) DeviceKey() string {
	if l.DeviceKeyIn() == InTPM {
		return l.TPMDeviceKey()
	}
	return l.fileDeviceKey()
}
func (l Layout) TPMDeviceKey() string  { return filepath.Join(string(l), "join", "device.tpm") }
func (l Layout) fileDeviceKey() string { return filepath.Join(string(l), "join", "device.key") }

// Kinds of storage for a device key.
const (
	InTPM  = "tpm"
	InFile = "file"
)

// DeviceKeyIn returns where the device key is stored, InTPM or InFile. It returns "" if the host
// has no device key.
func (l Layout) DeviceKeyIn() string {
	if _, err := os.Lstat(l.TPMDeviceKey()); err == nil {
		return InTPM
	}
	if _, err := os.Lstat(l.fileDeviceKey()); err == nil {
		return InFile
	}
	return ""
}

// Admission returns the path of the file with the operator's admission of the device key.
// JoinRequest returns the path of the file with the pending join request. Neither file is rolled
// back with documents.
func (l Layout) Admission() string   { return filepath.Join(string(l), "join", "admission.json") }
func (l Layout) JoinRequest() string { return filepath.Join(string(l), "join", "request.json") }

// IdentityKeys returns the path of the file with the private keys for which flor identity create
// requests certificates. IdentityFile returns the path of the copy of the identity file that flor
// identity install verified. The copy exists until activation has delivered its content.
func (l Layout) IdentityKeys() string { return filepath.Join(string(l), "join", "keys.json") }
func (l Layout) IdentityFile() string { return filepath.Join(string(l), "join", "identity.json") }

// NeedStateFile returns the path of the file with activation's record of the need with this ID.
func (l Layout) NeedStateFile(id string) string { return filepath.Join(l.Need(id), "state.json") }

// Provided says which provider processes a host runs according to its policy, and whether it runs a
// member of the shared state store.
type Provided struct {
	Kinds       []string // kinds of need, sorted
	StoreMember bool     // true if the host runs a member of the shared state store
}

// Provides returns the provider processes that this host runs according to the policy in force. If
// there is no policy, the result is empty.
func (l Layout) Provides() Provided {
	d, err := document.Read(Current(l.Documents()), document.DocPolicy)
	if err != nil {
		return Provided{}
	}
	p := d.Policy()
	return Provided{slices.Sorted(maps.Keys(p.Provider)), p.Store != nil && p.Store.Member != nil}
}

// State returns the path of the file with activation's record of the host's documents.
func (l Layout) State() string { return filepath.Join(string(l), "activation.json") }

// Current returns the path of the symbolic link that leads to the current generation of files in
// dir.
func Current(dir string) string { return filepath.Join(dir, "current") }

// OpenCurrent opens the current generation of the files in dir. All files that are read through the
// result belong to one generation, even if a newer one is delivered meanwhile. OpenCurrent returns
// fs.ErrNotExist if there is no generation yet. The caller must close the result.
func OpenCurrent(dir string) (*os.Root, error) { return os.OpenRoot(Current(dir)) }
