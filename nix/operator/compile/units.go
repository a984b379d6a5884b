package compile

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostdir"
	"github.com/florete/florete/internal/spiffe"
)

// Units contains the systemd units and related settings that an operator installs on a host of a
// cluster.
type Units struct {
	Instance hostdir.Instance
	Files    map[string]string // unit files by name, such as "florete-agent.service"
	Sysusers string            // accounts that they need, sysusers.d(5)
	Sysctl   string            // kernel settings that they need, sysctl.d(5)
	Runs     map[string]Runs   // services of the host by name
}

// Runs tells how a service must run on a host to match the topology: on which address it listens,
// under which account and in which systemd units.
type Runs struct {
	Upstream string `json:"upstream"` // address on which it listens, such as "127.0.0.1:8080" or "unix:/run/chat.sock"; empty if not declared
	Protocol string `json:"protocol"` // "tcp", "http", "ssh", "rdp", "vnc" or "udp"
	User     string `json:"user"`     // account; empty if any is accepted
	// Ports contains the ports by name if the service has several ports.
	Ports map[string]RunsAt `json:"ports,omitempty"`
	Units []string          `json:"units"` // systemd units that act as the service or are restarted with its delivered files; sorted
}

// RunsAt is the address and the protocol of one port of a service on a host.
type RunsAt struct {
	Upstream  string   `json:"upstream"`
	Protocols []string `json:"protocols"`
}

// ReadUnits returns the systemd units that run Florete on a host. The programs that they start are
// in the directory bin on that host. See bundle.BinTar.
func ReadUnits(ctx context.Context, src Source, host, bin string) (Units, error) {
	a, err := ask(ctx, src, "documents = true; hosts = [ "+quote(host)+" ]; bin = "+quote(bin)+";")
	if err != nil {
		return Units{}, err
	}
	if a.Units == nil {
		return Units{}, NoHost(a.Name, host, a.Hosts)
	}
	d, err := a.Documents[host][document.DocManifest].Open()
	if err != nil {
		return Units{}, fmt.Errorf("cluster %s: %w", a.Name, err)
	}
	addUnits(a.Runs, d.Manifest())
	return Units{a.Instances[host], a.Units, a.Sysusers, a.Sysctl, a.Runs}, nil
}

// addUnits adds to runs the units that a manifest names for services.
func addUnits(runs map[string]Runs, m document.Manifest) {
	add := func(id spiffe.ID, units []string) {
		r, ok := runs[id.Name()]
		if !ok || id.Kind() != spiffe.KindService || len(units) == 0 {
			return
		}
		r.Units = slices.Compact(slices.Sorted(slices.Values(append(r.Units, units...))))
		runs[id.Name()] = r
	}
	for _, n := range m.Needs {
		add(n.For, n.OnChange)
	}
	for _, c := range m.Forwarder.Callers {
		add(c.ID, c.Units)
	}
}

// Enabled returns the names of the units that have an [Install] section, so that an operator can
// enable them. The names are sorted.
func (u Units) Enabled() []string {
	names := slices.Sorted(maps.Keys(u.Files))
	return slices.DeleteFunc(names, func(name string) bool { return !strings.Contains("\n"+u.Files[name], "\n[Install]\n") })
}

// Write writes the units to dir, with the files <instance>.sysusers and <instance>.sysctl. It
// removes other files there whose names begin with <instance>-, because an earlier call may have
// written them.
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

// Text prints a table of the services on the host, and the command that enables the units.
func (u Units) Text(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	if len(u.Runs) > 0 {
		fmt.Fprintln(w, "SERVICE\tLISTENS\tPROTOCOL\tUSER\tUNITS")
	}
	for _, name := range slices.Sorted(maps.Keys(u.Runs)) {
		s := u.Runs[name]
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", name, cmp.Or(s.Upstream, "-"), s.Protocol, cmp.Or(s.User, "-"), cmp.Or(strings.Join(s.Units, " "), "-"))
		for _, port := range slices.Sorted(maps.Keys(s.Ports)) {
			p := s.Ports[port]
			fmt.Fprintf(w, "  :%s\t%s\t%s\t\t\n", port, cmp.Or(p.Upstream, "-"), strings.Join(p.Protocols, "+"))
		}
	}
	if err := w.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(out, "systemctl enable %s\n", strings.Join(u.Enabled(), " "))
	return err
}
