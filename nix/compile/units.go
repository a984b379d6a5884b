package compile

import (
	"context"
	"maps"
	"os"
	"path/filepath"

	"github.com/florete/florete"
)

// Units are what systemd is told of a host as a member of a cluster.
type Units struct {
	Instance florete.Instance
	Files    map[string]string // by name, "florete-agent.service"
	Sysusers string            // the accounts they need, sysusers.d(5)
	Sysctl   string            // what they need of the kernel, sysctl.d(5)
}

// ReadUnits returns the units of a host whose commands are in directory bin.
func ReadUnits(ctx context.Context, src Source, host, bin string) (Units, error) {
	a, err := ask(ctx, src, "documents = true; hosts = [ "+quote(host)+" ]; bin = "+quote(bin)+";")
	if err != nil {
		return Units{}, err
	}
	if a.Units == nil {
		return Units{}, NoHost(a.Name, host, a.Hosts)
	}
	return Units{a.Instances[host], a.Units, a.Sysusers, a.Sysctl}, nil
}

// Write puts the units in dir, <instance>.sysusers and <instance>.sysctl beside
// them, and removes units of an earlier call that are no more. Nothing but files named
// <instance>-* is removed, so dir may hold others.
func (u Units) Write(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	old, err := filepath.Glob(filepath.Join(dir, u.Instance.Unit("*")))
	if err != nil {
		return err
	}
	for _, path := range old {
		if info, err := os.Lstat(path); err != nil || u.Files[filepath.Base(path)] != "" || !info.Mode().IsRegular() {
			continue
		}
		if err := os.Remove(path); err != nil {
			return err
		}
	}
	files := maps.Clone(u.Files)
	files[u.Instance.String()+".sysusers"] = u.Sysusers
	files[u.Instance.String()+".sysctl"] = u.Sysctl
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}
