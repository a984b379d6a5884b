package identityfile

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"

	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/internal/strictjson"
	"github.com/florete/florete/internal/unixtime"
	"github.com/florete/florete/nix/operator/client"
	"github.com/florete/florete/nix/operator/published"
	"github.com/florete/florete/providers/ca"
	"github.com/florete/florete/providers/join"
)

// Issued is the record of one certificate in an identity file. The operator keeps these records in
// the directory of the enrolment certificate.
type Issued struct {
	Time   unixtime.Time `json:"time"`
	Host   string        `json:"host,omitempty"` // empty for a machine that is not a host
	ID     spiffe.ID     `json:"id"`
	Serial string        `json:"serial"` // serial number of the certificate in hex
	Until  unixtime.Time `json:"until"`
	Device string        `json:"device,omitempty"` // fingerprint of the host's device key, if it joins
}

// Record returns the records in a directory about certificates that were issued in identity files,
// oldest first. If there is no file with records, Record returns none. A malformed line is an
// error.
func Record(dir ca.Dir) (all []Issued, err error) {
	path := dir.Path(ca.EnrolmentRecord)
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	lines := bufio.NewScanner(bytes.NewReader(b))
	for n := 1; lines.Scan(); n++ {
		var i Issued
		if err := strictjson.Decode(lines.Bytes(), &i); err != nil {
			return nil, fmt.Errorf("%s:%d: %w: restore it, or remove the line", path, n, err)
		}
		all = append(all, i)
	}
	return all, lines.Err()
}

// keepRecord stores the records of the certificates. It is called before the file is handed out, so
// that no certificate is in use without a record.
func keepRecord(dir ca.Dir, all []Issued) error {
	for _, i := range all {
		line, err := json.Marshal(i)
		if err == nil {
			err = dir.Record(line)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// recordIssued records the certificates in the audit log of the first provider that answers.
func recordIssued(ctx context.Context, c published.Cluster, all []Issued) error {
	return c.Providers.First(func(at *client.Provider) error {
		for some := range slices.Chunk(all, join.MaxIssued) {
			i := join.Issued{Host: some[0].Host, Device: some[0].Device, Until: some[0].Until}
			for _, one := range some {
				i.Certificates = append(i.Certificates, join.IssuedSVID{ID: one.ID, Serial: one.Serial})
			}
			if err := at.Issued(ctx, i); err != nil {
				return err
			}
		}
		return nil
	})
}
