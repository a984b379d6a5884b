package published

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/florete/florete/internal/atomicfile"
	"github.com/florete/florete/internal/trust"
)

// record lists the documents that a signing key has signed. It is stored in a file beside the key.
// A compromised provider may return anything. Therefore documents from a provider are compared with
// the record before they are signed again, and revocation lists before they are continued.
type record struct {
	path     string
	cluster  string
	Clusters map[string]*signed `json:"clusters"`
}

// signed lists the signed documents of one cluster.
type signed struct {
	Versions []version `json:"versions"` // by serial

	// Revocations is the newest revocation list that was offered. It is nil if there is none.
	Revocations *trust.SignedRevocations `json:"revocations,omitempty"`
}

// version is a version of the documents that was published, or to which hosts may go back.
type version struct {
	Serial int64  `json:"serial"`
	Rev    string `json:"rev"`
	Digest string `json:"digest"` // archive.SignedTree.Digest
	Served bool   `json:"served"` // a provider accepted it as the newest

	// Back is true for a version to which hosts go back if the rollout of the preceding serial
	// stops.
	Back bool `json:"back,omitempty"`

	// Roots contains the fingerprints of the roots in the documents of the version.
	Roots []string `json:"roots,omitempty"`
}

// maxRecorded is the maximum number of versions in a record.
const maxRecorded = 1000

// openRecord reads a record from a file. If the key has not signed anything yet, the record is
// empty.
func openRecord(path, cluster string) (*record, error) {
	r := &record{path: path, cluster: cluster}
	b, err := os.ReadFile(r.path)
	if errors.Is(err, fs.ErrNotExist) {
		b, err = []byte("{}"), nil
	}
	if err == nil {
		err = json.Unmarshal(b, r)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: cannot read the record of what the key has signed: %w: restore the file, or name another with --signed", r.path, err)
	}
	if r.Clusters == nil {
		r.Clusters = map[string]*signed{}
	}
	if r.Clusters[cluster] == nil {
		r.Clusters[cluster] = &signed{}
	}
	return r, nil
}

func (r *record) of() *signed { return r.Clusters[r.cluster] }

// save writes the record, merged with versions that other processes have added since it was read.
func (r *record) save() error {
	lock, err := os.OpenFile(r.path+".lock", os.O_RDWR|os.O_CREATE, 0o600)
	if err == nil {
		defer lock.Close()
		err = unix.Flock(int(lock.Fd()), unix.LOCK_EX)
	}
	var b []byte
	if err == nil {
		r.merge()
		b, err = json.MarshalIndent(r, "", "  ")
	}
	if err == nil {
		err = atomicfile.File(r.path, append(b, '\n'), 0o600)
	}
	if err != nil {
		return fmt.Errorf("cannot record what the key has signed: %w: with --signed, name a file that can be written", err)
	}
	return nil
}

// merge adds the entries of the file that this record lacks.
func (r *record) merge() {
	var now record
	b, err := os.ReadFile(r.path)
	if err != nil || json.Unmarshal(b, &now) != nil {
		return
	}
	for name, is := range now.Clusters {
		own := r.Clusters[name]
		if own == nil || name != r.cluster {
			r.Clusters[name] = is
			continue
		}
		for _, v := range is.Versions {
			if _, ok := r.version(v.Serial); !ok {
				own.Versions = append(own.Versions, v)
				slices.SortFunc(own.Versions, func(a, b version) int { return cmp.Compare(a.Serial, b.Serial) })
			}
		}
		own.Versions = own.Versions[max(0, len(own.Versions)-maxRecorded):]
		if own.Revocations == nil {
			own.Revocations = is.Revocations
		}
	}
}

// version returns the recorded version with a serial.
func (r *record) version(serial int64) (v version, ok bool) {
	all := r.of().Versions
	i, ok := slices.BinarySearchFunc(all, serial, func(v version, serial int64) int { return cmp.Compare(v.Serial, serial) })
	if ok {
		v = all[i]
	}
	return v, ok
}

// served returns the newest version that a provider accepted.
func (r *record) served() (v version) {
	for _, is := range r.of().Versions {
		if is.Served {
			v = is
		}
	}
	return v
}

// roots returns the fingerprints of the roots in the newest version that a provider accepted. If no
// provider accepted a version, it uses the newest signed version. It returns none if the roots are
// not recorded.
func (r *record) roots() (all []string) {
	if v := r.served(); v.Roots != nil {
		return v.Roots
	}
	for _, is := range r.of().Versions {
		all = is.Roots
	}
	return all
}

// newest returns the highest serial that was signed.
func (r *record) newest() int64 {
	all := r.of().Versions
	if len(all) == 0 {
		return 0
	}
	return all[len(all)-1].Serial
}

// add adds versions to the record.
func (r *record) add(all ...version) error {
	o := r.of()
	for _, v := range all {
		o.Versions = append(slices.DeleteFunc(o.Versions, func(is version) bool { return is.Serial == v.Serial }), v)
	}
	slices.SortFunc(o.Versions, func(a, b version) int { return cmp.Compare(a.Serial, b.Serial) })
	o.Versions = o.Versions[max(0, len(o.Versions)-maxRecorded):]
	return r.save()
}

// offered records a version that is about to be offered, unless it is already served.
func (r *record) offered(v version) error {
	if is, ok := r.version(v.Serial); ok && is.Served {
		return nil
	}
	return r.add(v)
}

// list returns the newest revocation list that was offered. It returns nil if there is none.
func (r *record) list() (*trust.Revocations, error) {
	s := r.of().Revocations
	if s == nil {
		return nil, nil
	}
	list, err := s.Open()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", r.path, err)
	}
	return list, nil
}
