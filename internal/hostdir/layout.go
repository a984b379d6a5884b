package hostdir

import (
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/florete/florete/internal/document"
)

// Layout is where things lie on a host, below one directory (Instance.State).
// Activation writes, everyone else only reads:
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

// The files of a delivered SVID.
const (
	FileSVID   = "svid.pem"   // leaf, then intermediates
	FileKey    = "key.pem"    // PKCS #8, made on this host
	FileBundle = "bundle.pem" // roots of the trust domain
)

// Documents is the directory with the accepted documents.
func (l Layout) Documents() string { return filepath.Join(string(l), "documents") }

// DocumentsCopy is the directory with the accepted documents once more.
func (l Layout) DocumentsCopy() string { return filepath.Join(string(l), "documents-copy") }

// DocumentsLock is the file that is locked while documents change, ActivationLock the one that
// activation has locked, and Stopped the one that activation leaves when it is stopped in order. That
// has the boot in it.
func (l Layout) DocumentsLock() string  { return filepath.Join(string(l), "documents.lock") }
func (l Layout) ActivationLock() string { return filepath.Join(string(l), "activation.lock") }
func (l Layout) Stopped() string        { return filepath.Join(string(l), "stopped") }

// Need is the directory of one need.
func (l Layout) Need(id string) string { return filepath.Join(string(l), "needs", id) }

// Manifest is the manifest in force. The error is fs.ErrNotExist when there is none yet.
func (l Layout) Manifest() (document.Document, error) { return l.Refresh(document.Document{}) }

// Refresh is Manifest for a reader that has old: it decodes nothing where that is still
// in force.
func (l Layout) Refresh(old document.Document) (document.Document, error) {
	return document.Reread(old, Current(l.Documents()), document.DocManifest)
}

// Revocations is the file of the revocation list, which is of no generation: whatever goes
// back, that does not.
func (l Layout) Revocations() string { return filepath.Join(string(l), "revocations.json") }

// DeviceKey is the file of the private key that proves this host where the flake declares no
// SSH host key, TPMDeviceKey in its place what a TPM made of it, which no other TPM can load.
func (l Layout) DeviceKey() string {
	if l.DeviceKeyIn() == InTPM {
		return l.TPMDeviceKey()
	}
	return l.fileDeviceKey()
}
func (l Layout) TPMDeviceKey() string  { return filepath.Join(string(l), "join", "device.tpm") }
func (l Layout) fileDeviceKey() string { return filepath.Join(string(l), "join", "device.key") }

// What has a device key.
const (
	InTPM  = "tpm"
	InFile = "file"
)

// DeviceKeyIn is what has the device key, InTPM or InFile; empty without one.
func (l Layout) DeviceKeyIn() string {
	if _, err := os.Lstat(l.TPMDeviceKey()); err == nil {
		return InTPM
	}
	if _, err := os.Lstat(l.fileDeviceKey()); err == nil {
		return InFile
	}
	return ""
}

// Admission is the file of the operator's word for the device key, and JoinRequest of what
// there is while it waits for that. Nothing goes back with documents.
func (l Layout) Admission() string   { return filepath.Join(string(l), "join", "admission.json") }
func (l Layout) JoinRequest() string { return filepath.Join(string(l), "join", "request.json") }

// IdentityKeys is the file of the private keys that flor id create requests certificates for,
// and IdentityFile that of what flor enroll verified, until activation has delivered it.
func (l Layout) IdentityKeys() string { return filepath.Join(string(l), "join", "keys.json") }
func (l Layout) IdentityFile() string { return filepath.Join(string(l), "join", "identity.json") }

// NeedStateFile is where activation keeps what it knows of a need.
func (l Layout) NeedStateFile(id string) string { return filepath.Join(l.Need(id), "state.json") }

// Provided lists the processes that a policy has a host run.
type Provided struct {
	Kinds       []string // kinds of need that it answers, sorted
	StoreMember bool     // a member of that store
}

// Provides returns what the policy in force has this host run; nothing without one.
func (l Layout) Provides() Provided {
	d, err := document.Read(Current(l.Documents()), document.DocPolicy)
	if err != nil {
		return Provided{}
	}
	p := d.Policy()
	return Provided{slices.Sorted(maps.Keys(p.Provider)), p.Store != nil && p.Store.Member != nil}
}

// State is where activation keeps what it knows of the documents.
func (l Layout) State() string { return filepath.Join(string(l), "activation.json") }

// Current is the symlink to the generation in force below dir.
func Current(dir string) string { return filepath.Join(dir, "current") }

// OpenCurrent opens the generation in force below dir. Files read through it are
// of one generation even when a new one arrives in between. The error is
// fs.ErrNotExist when there is none yet.
func OpenCurrent(dir string) (*os.Root, error) { return os.OpenRoot(Current(dir)) }
