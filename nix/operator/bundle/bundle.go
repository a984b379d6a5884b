// Package bundle packs everything that a host needs to run into one file, for Linux with systemd: a
// tar.gz with an install.sh, or a Debian package. The same host results in the same bytes.
//
//	install.sh            installs, upgrades, rolls back and removes
//	bin/flor              static; with flor-provider on provider hosts
//	documents/…           as written by florctl compile
//	units/florete-*       as written by florctl units
//	florete.sysusers      accounts, for systemd-sysusers
//	florete.sysctl        kernel settings, for systemd-sysctl
//	version               <serial>-<digest of the rest>
//
// On a host that is a member of several clusters, the prefix florete is florete_<instance>.
package bundle

import (
	"bytes"
	"context"
	"crypto/sha256"
	"debug/elf"
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostdir"
	"github.com/florete/florete/nix/operator/compile"
)

// BinTar is where the commands of a tar.gz are on the host, for compile.ReadUnits.
func BinTar(m hostdir.Instance) string {
	if m == "" {
		return "/usr/local/bin"
	}
	return path.Join("/usr/local/lib", m.String(), "current/bin")
}

// BinDeb is where those of a package are.
func BinDeb(m hostdir.Instance) string {
	if m == "" {
		return "/usr/bin"
	}
	return path.Join("/usr/lib", m.String(), "bin")
}

// Bundle is what one host runs on.
type Bundle struct {
	Documents []document.Document
	Units     compile.Units
	Programs  Programs
}

// Read makes the bundle of a host of a compiled cluster. Its programs are in dir, by default beside this one, and are
// to be installed where the function says.
func Read(ctx context.Context, src compile.Source, c compile.Cluster, host, dir string, installed func(hostdir.Instance) string) (b Bundle, err error) {
	if dir == "" {
		self, err := os.Executable()
		if err != nil {
			return b, err
		}
		dir = filepath.Dir(self)
	}
	b.Documents = c.Documents[host]
	if b.Programs, err = readPrograms(dir, needed(b.Documents), c.Systems[host]); err == nil {
		b.Units, err = compile.ReadUnits(ctx, src, host, installed(c.Instances[host]))
	}
	return b, err
}

// Programs are the commands of a host by name, all for one architecture.
type Programs struct {
	Machine elf.Machine
	files   map[string][]byte
}

// needed are the commands that a host with these documents runs.
func needed(documents []document.Document) []string {
	if slices.ContainsFunc(documents, func(d document.Document) bool { return d.Envelope.Kind == document.DocPolicy }) {
		return []string{"flor", "flor-provider"}
	}
	return []string{"flor"}
}

// machines are the architectures of Nix's systems, with Go's names for them.
var machines = map[string]struct {
	elf.Machine
	goarch string
}{"x86_64-linux": {elf.EM_X86_64, "amd64"}, "aarch64-linux": {elf.EM_AARCH64, "arm64"}}

// readPrograms reads commands from dir. They must be static, to run on any
// distribution, and for the host's system, unless that is not known, "".
func readPrograms(dir string, names []string, system string) (Programs, error) {
	p := Programs{files: map[string][]byte{}}
	for _, name := range names {
		path := filepath.Join(dir, name)
		b, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			return p, fmt.Errorf("no program %s: build it with CGO_ENABLED=0 go build -trimpath -ldflags=-s, and name its directory with --bin", path)
		}
		if err != nil {
			return p, err
		}
		f, err := elf.NewFile(bytes.NewReader(b))
		if err != nil {
			return p, fmt.Errorf("%s: not a Linux program: %w", path, err)
		}
		if slices.ContainsFunc(f.Progs, func(p *elf.Prog) bool { return p.Type == elf.PT_INTERP }) {
			return p, fmt.Errorf("%s: linked dynamically: build it with CGO_ENABLED=0", path)
		}
		if want, declared := machines[system]; declared && f.Machine != want.Machine {
			return p, fmt.Errorf("%s: for %s, but the topology declares the host's system %q: build it with CGO_ENABLED=0 GOARCH=%s go build -trimpath", path, f.Machine, system, want.goarch)
		}
		if p.Machine != elf.EM_NONE && p.Machine != f.Machine {
			return p, fmt.Errorf("%s: for %s, but %s is for %s: build both for one architecture", path, f.Machine, names[0], p.Machine)
		}
		p.Machine, p.files[name] = f.Machine, b
	}
	return p, nil
}

// file is one file of an archive; a target makes it a symlink.
type file struct {
	path   string // relative, with slashes
	data   []byte
	mode   fs.FileMode
	target string
}

// @NAME@ stands for what everything of the bundle is called on the host.
//
//go:embed install.sh
var installer string

// envelope is that of the manifest.
func (b Bundle) envelope() document.Envelope { return b.Documents[0].Envelope }

// time is the same for all files.
func (b Bundle) time() time.Time { return time.Unix(b.envelope().Serial, 0) }

// Version tells bundles apart: the manifest's serial, and a digest of everything.
func (b Bundle) Version() string {
	sum := sha256.New()
	for _, f := range b.files() {
		fmt.Fprintf(sum, "%s %o %d %s\n", f.path, f.mode, len(f.data), f.target)
		sum.Write(f.data)
	}
	return fmt.Sprintf("%d-%x", b.envelope().Serial, sum.Sum(nil)[:6])
}

// name is what everything of the bundle is called on the host, "florete".
func (b Bundle) name() string { return b.Units.Instance.String() }

// files are all but the version.
func (b Bundle) files() []file {
	return sorted(append(b.place("bin", "documents", "units"),
		file{path: "install.sh", data: []byte(strings.ReplaceAll(installer, "@NAME@", b.name())), mode: 0o755},
		file{path: b.name() + ".sysctl", data: []byte(b.Units.Sysctl), mode: 0o644},
		file{path: b.name() + ".sysusers", data: []byte(b.Units.Sysusers), mode: 0o644},
	))
}

// place puts programs, documents and units into directories.
func (b Bundle) place(bin, documents, units string) (all []file) {
	for name, data := range b.Programs.files {
		all = append(all, file{path: path.Join(bin, name), data: data, mode: 0o755})
	}
	for _, d := range b.Documents {
		for name, data := range d.Files() {
			all = append(all, file{path: path.Join(documents, name), data: data, mode: 0o644})
		}
	}
	for name, text := range b.Units.Files {
		all = append(all, file{path: path.Join(units, name), data: []byte(text), mode: 0o644})
	}
	return all
}

func sorted(files []file) []file {
	slices.SortFunc(files, func(a, b file) int { return strings.Compare(a.path, b.path) })
	return files
}
