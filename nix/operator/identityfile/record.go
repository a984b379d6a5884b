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

// Issued is a line of the record of what an enrolment certificate issued, in its directory.
type Issued struct {
	Time   unixtime.Time `json:"time"`
	Host   string        `json:"host,omitempty"` // empty for a machine that is no host
	ID     spiffe.ID     `json:"id"`
	Serial string        `json:"serial"` // of the certificate, in hex
	Until  unixtime.Time `json:"until"`
	Device string        `json:"device,omitempty"` // fingerprint of the host's device key, where it joins
}

// Record returns the lines of a directory, oldest first; the last may have been cut short.
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

// keepRecord keeps what is issued, before anybody has it.
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

// recordIssued has the first provider that answers keep what is issued in its audit log.
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
