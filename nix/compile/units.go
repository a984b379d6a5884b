package compile

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Units are the files of a host's systemd units by name; florete.sysusers, the
// accounts they need; and florete.sysctl, what they ask of the kernel.
type Units map[string]string

// ReadUnits returns the units of a host whose commands are in directory bin.
func ReadUnits(ctx context.Context, src Source, host, bin string) (Units, error) {
	a, err := ask(ctx, src, "documents = true; hosts = [ "+quote(host)+" ]; bin = "+quote(bin)+";")
	if err != nil {
		return nil, err
	}
	if a.Units == nil {
		return nil, fmt.Errorf("cluster %s has no host %q, it has %s", a.Name, host, strings.Join(a.Hosts, ", "))
	}
	return a.Units, nil
}

// Write puts the units in dir and removes those of an earlier call that are no
// more. Nothing but files named florete-* is removed, so dir may hold others.
func (u Units) Write(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	old, err := filepath.Glob(filepath.Join(dir, "florete-*"))
	if err != nil {
		return err
	}
	for _, path := range old {
		if info, err := os.Lstat(path); err != nil || u[filepath.Base(path)] != "" || !info.Mode().IsRegular() {
			continue
		}
		if err := os.Remove(path); err != nil {
			return err
		}
	}
	for name, text := range u {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}
