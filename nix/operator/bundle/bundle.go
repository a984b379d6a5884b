// Package bundle packs everything that a host needs to run into one file, for Linux hosts with
// systemd. The file is a tar.gz with an install.sh, or a Debian package. The same input always
// results in the same bytes.
//
//	install.sh            installs, upgrades, rolls back and removes
//	bin/flor              static; with flor-provider on provider hosts
//	man/flor-ping.1 …     manual pages of these programs
//	documents/…           as written by florctl compile
//	units/florete-*       as written by florctl units
//	florete.sysusers      accounts, for systemd-sysusers
//	florete.sysctl        kernel settings, for systemd-sysctl
//	version               <serial>-<digest of the rest>
//
// On a host that is a member of several clusters, names begin with florete_<instance> instead of
// florete.
package bundle

import (
	"bytes"
	"context"
	"crypto/sha256"
	"debug/elf"
	"embed"
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

// BinTar returns the directory in which the programs are on a host that was installed from a tar.gz
// bundle. Pass it to compile.ReadUnits.
func BinTar(m hostdir.Instance) string {
	if m == "" {
		return "/usr/local/bin"
	}
	return path.Join("/usr/local/lib", m.String(), "current/bin")
}

// BinDeb returns the directory in which the programs are on a host that was installed from a Debian
// package. Pass it to compile.ReadUnits.
func BinDeb(m hostdir.Instance) string {
	if m == "" {
		return "/usr/bin"
	}
	return path.Join("/usr/lib", m.String(), "bin")
}

// Bundle contains everything that an operator installs on one host: its documents, systemd units
// and programs.
type Bundle struct {
	Documents []document.Document
	Units     compile.Units
	Programs  Programs
}

// Read returns the bundle for a host of a compiled cluster. It reads the programs from the
// directory dir or, if dir is empty, from the directory of the running program. The argument
// installed is BinTar or BinDeb.
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

// Programs contains the executable files of a bundle, all for the same architecture.
type Programs struct {
	Machine elf.Machine
	files   map[string][]byte
}

// Digests returns the SHA-256 digest of each program, in hexadecimal. The keys are the names of the
// programs.
func (p Programs) Digests() map[string]string {
	digests := map[string]string{}
	for name, data := range p.files {
		digests[name] = fmt.Sprintf("%x", sha256.Sum256(data))
	}
	return digests
}

// needed returns the names of the commands that a host with these documents runs.
func needed(documents []document.Document) []string {
	if slices.ContainsFunc(documents, func(d document.Document) bool { return d.Envelope.Kind == document.DocPolicy }) {
		return []string{"flor", "flor-provider"}
	}
	return []string{"flor"}
}

// machines maps Nix systems to architectures and to Go's names for them.
var machines = map[string]struct {
	elf.Machine
	goarch string
}{"x86_64-linux": {elf.EM_X86_64, "amd64"}, "aarch64-linux": {elf.EM_AARCH64, "arm64"}}

// readPrograms reads commands from dir. The commands must be static, so that they run on any
// distribution, and must be built for the given Nix system. If system is "", any system is
// accepted.
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

// file is a file in an archive. If target is set, it is a symlink.
type file struct {
	path   string // relative, with slashes
	data   []byte
	mode   fs.FileMode
	target string
}

// In the installer, @NAME@ stands for the prefix of the bundle's names on the host.
//
//go:embed install.sh
var installer string

// The manual pages, in one directory for each program. The tests of the programs' help write them.
//
//go:embed man
var manuals embed.FS

// pages returns the manual pages of a program, renamed after the command that operators type.
func (b Bundle) pages(program, dir string) (all []file) {
	entries, err := manuals.ReadDir(path.Join("man", program))
	if err != nil {
		panic(err) // embedded
	}
	for _, e := range entries {
		data, err := manuals.ReadFile(path.Join("man", program, e.Name()))
		if err != nil {
			panic(err)
		}
		name := b.Units.Instance.Program(program) + strings.TrimPrefix(e.Name(), program)
		all = append(all, file{path: path.Join(dir, name), data: data, mode: 0o644})
	}
	return all
}

// envelope returns the envelope of the host's manifest, from which the bundle has its serial.
func (b Bundle) envelope() document.Envelope { return b.Documents[0].Envelope }

// time returns the modification time of all files, which is the serial of the manifest. Equal
// bundles therefore have equal bytes.
func (b Bundle) time() time.Time { return time.Unix(b.envelope().Serial, 0) }

// Version returns a string that changes with the content of the bundle: the serial of the manifest,
// a hyphen, and a digest of all files.
func (b Bundle) Version() string {
	sum := sha256.New()
	for _, f := range b.files() {
		fmt.Fprintf(sum, "%s %o %d %s\n", f.path, f.mode, len(f.data), f.target)
		sum.Write(f.data)
	}
	return fmt.Sprintf("%d-%x", b.envelope().Serial, sum.Sum(nil)[:6])
}

// name returns the prefix of the bundle's names on the host, such as "florete".
func (b Bundle) name() string { return b.Units.Instance.String() }

// files returns all files except the version.
func (b Bundle) files() []file {
	return sorted(append(b.place("bin", "man", "documents", "units"),
		file{path: "install.sh", data: []byte(strings.ReplaceAll(installer, "@NAME@", b.name())), mode: 0o755},
		file{path: b.name() + ".sysctl", data: []byte(b.Units.Sysctl), mode: 0o644},
		file{path: b.name() + ".sysusers", data: []byte(b.Units.Sysusers), mode: 0o644},
	))
}

// place returns the programs, manual pages, documents and units of the bundle as files in the given
// directories.
func (b Bundle) place(bin, man, documents, units string) (all []file) {
	for name, data := range b.Programs.files {
		all = append(all, file{path: path.Join(bin, name), data: data, mode: 0o755})
		all = append(all, b.pages(name, man)...)
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
