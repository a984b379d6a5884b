package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/florete/florete/internal/atomicfile"
	"github.com/florete/florete/internal/trust"
)

// signedRecord lists the documents that a signing key has signed, in a file beside it. A provider that was broken into
// may answer anything: what is signed again, or continued, is compared with this.
type signedRecord struct {
	path     string
	cluster  string
	Clusters map[string]*signedOf `json:"clusters"`
}

// signedOf lists the documents of one cluster that were signed.
type signedOf struct {
	Versions []signedVersion `json:"versions"` // by serial

	// Revocations is the newest list that was offered, nil for none.
	Revocations *trust.SignedRevocations `json:"revocations,omitempty"`
}

// signedVersion is a version, or one to go back to.
type signedVersion struct {
	Serial int64  `json:"serial"`
	Rev    string `json:"rev"`
	Digest string `json:"digest"` // publish.Tree.Digest
	Served bool   `json:"served"` // a provider took it as the newest

	// Roots are the fingerprints of the roots that its documents have.
	Roots []string `json:"roots,omitempty"`
}

// maxRecorded is how many versions a record has.
const maxRecorded = 1000

// signedFlag adds the flag that names the record.
func signedFlag(cmd *cobra.Command) *string {
	return cmd.Flags().String("signed", "", "`FILE` with what the key has signed, which a provider's answers are compared with (default: that of --key, with .signed)")
}

// openRecord reads the record of a key, which may have signed nothing yet.
func openRecord(keyFile, path, cluster string) (*signedRecord, error) {
	r := &signedRecord{path: cmp.Or(path, keyFile+".signed"), cluster: cluster}
	b, err := os.ReadFile(r.path)
	if errors.Is(err, fs.ErrNotExist) {
		b, err = []byte("{}"), nil
	}
	if err == nil {
		err = json.Unmarshal(b, r)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: what the key has signed cannot be read: %w: restore the file, or name another with --signed", r.path, err)
	}
	if r.Clusters == nil {
		r.Clusters = map[string]*signedOf{}
	}
	if r.Clusters[cluster] == nil {
		r.Clusters[cluster] = &signedOf{}
	}
	return r, nil
}

func (r *signedRecord) of() *signedOf { return r.Clusters[r.cluster] }

// save writes the record, with the versions that other processes have added to it since it was read.
func (r *signedRecord) save() error {
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
		return fmt.Errorf("what the key has signed cannot be recorded: %w: name a file that can be written with --signed", err)
	}
	return nil
}

// merge takes what the file has and this record has not.
func (r *signedRecord) merge() {
	var now signedRecord
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
				slices.SortFunc(own.Versions, func(a, b signedVersion) int { return cmp.Compare(a.Serial, b.Serial) })
			}
		}
		own.Versions = own.Versions[max(0, len(own.Versions)-maxRecorded):]
		if own.Revocations == nil {
			own.Revocations = is.Revocations
		}
	}
}

// version returns what is known of a serial.
func (r *signedRecord) version(serial int64) (v signedVersion, ok bool) {
	all := r.of().Versions
	i, ok := slices.BinarySearchFunc(all, serial, func(v signedVersion, serial int64) int { return cmp.Compare(v.Serial, serial) })
	if ok {
		v = all[i]
	}
	return v, ok
}

// served returns the newest version that a provider took.
func (r *signedRecord) served() (v signedVersion) {
	for _, is := range r.of().Versions {
		if is.Served {
			v = is
		}
	}
	return v
}

// roots returns the fingerprints of the roots of the newest version that a provider took or, where
// none is known to have been taken, that was signed; none where the record does not have them.
func (r *signedRecord) roots() (all []string) {
	if v := r.served(); v.Roots != nil {
		return v.Roots
	}
	for _, is := range r.of().Versions {
		all = is.Roots
	}
	return all
}

// newest returns the highest serial that was signed.
func (r *signedRecord) newest() int64 {
	all := r.of().Versions
	if len(all) == 0 {
		return 0
	}
	return all[len(all)-1].Serial
}

// add records versions.
func (r *signedRecord) add(all ...signedVersion) error {
	o := r.of()
	for _, v := range all {
		o.Versions = append(slices.DeleteFunc(o.Versions, func(is signedVersion) bool { return is.Serial == v.Serial }), v)
	}
	slices.SortFunc(o.Versions, func(a, b signedVersion) int { return cmp.Compare(a.Serial, b.Serial) })
	o.Versions = o.Versions[max(0, len(o.Versions)-maxRecorded):]
	return r.save()
}

// list returns the newest revocation list that was offered, nil for none.
func (r *signedRecord) list() (*trust.Revocations, error) {
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
