package main

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
	"time"

	"github.com/spf13/cobra"

	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/internal/strictjson"
	"github.com/florete/florete/internal/terminal"
	"github.com/florete/florete/internal/unixtime"
	"github.com/florete/florete/nix/operator/client"
	"github.com/florete/florete/nix/operator/published"
	"github.com/florete/florete/providers/ca"
	"github.com/florete/florete/providers/join"
)

func newIDCmd() *cobra.Command {
	cmd := &cobra.Command{Use: "id", Short: "Issue identity files, for machines without a network and the first operator"}
	cmd.AddCommand(newIDIssueCmd(), newIDListCmd())
	return cmd
}

// issued is a line of the record of what an enrolment certificate issued, in its directory.
type issued struct {
	Time   unixtime.Time `json:"time"`
	Host   string        `json:"host,omitempty"` // empty for a machine that is no host
	ID     spiffe.ID     `json:"id"`
	Serial string        `json:"serial"` // of the certificate, in hex
	Until  unixtime.Time `json:"until"`
	Device string        `json:"device,omitempty"` // fingerprint of the host's device key, where it joins
}

// readRecord reads the lines, oldest first; the last may have been cut short.
func readRecord(dir ca.Dir) (all []issued, err error) {
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
		var i issued
		if err := strictjson.Decode(lines.Bytes(), &i); err != nil {
			return nil, fmt.Errorf("%s:%d: %w: restore it, or remove the line", path, n, err)
		}
		all = append(all, i)
	}
	return all, lines.Err()
}

// keepRecord keeps what is issued, before anybody has it.
func keepRecord(dir ca.Dir, all []issued) error {
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
func recordIssued(ctx context.Context, p published.Cluster, all []issued) error {
	return p.Providers.First(func(at *client.Provider) error {
		for some := range slices.Chunk(all, join.MaxIssued) {
			i := join.Issued{Host: some[0].Host, Device: some[0].Device, Until: some[0].Until}
			for _, c := range some {
				i.Certificates = append(i.Certificates, join.IssuedSVID{ID: c.ID, Serial: c.Serial})
			}
			if err := at.Issued(ctx, i); err != nil {
				return err
			}
		}
		return nil
	})
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return !errors.Is(err, fs.ErrNotExist)
}

func newIDListCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "list --dir DIR",
		Short: "Print the certificates that florctl id issue made",
		Long: `Print the certificates that florctl id issue made, by the record beside enrol.crt. florctl
revoke has hosts refuse one of them, all of a host, or a device.`,
		Args: cobra.NoArgs,
	}
	dir := cmd.Flags().String("dir", ".", "`DIR`ectory with enrol.crt and enrol.key")
	asJSON := cmd.Flags().Bool("json", false, "print JSON")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if cert := ca.Dir(*dir).Path(ca.EnrolmentCertificate); !exists(cert) {
			return fmt.Errorf("%s: there is no enrolment certificate, want the directory that has it: florctl id list --dir DIR", cert)
		}
		all, err := readRecord(ca.Dir(*dir))
		if err != nil {
			return err
		}
		if *asJSON {
			return terminal.PrintJSON(cmd.OutOrStdout(), append([]issued{}, all...))
		}
		w := terminal.NewTable(cmd.OutOrStdout(), "ISSUED", "HOST", "IDENTITY", "UNTIL", "SERIAL", "DEVICE")
		for _, i := range all {
			w.Row(i.Time.UTC().Format(time.RFC3339), i.Host, i.ID.Short(), i.Until.UTC().Format(time.RFC3339), i.Serial, i.Device)
		}
		return w.Flush()
	}
	return cmd
}
