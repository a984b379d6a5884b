package bundle

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"io"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostdir"
	"github.com/florete/florete/nix/operator/compile"
)

// program returns the header of a Linux program, with text behind it.
func program(m elf.Machine, dynamic bool, text string) []byte {
	h := elf.Header64{Type: uint16(elf.ET_EXEC), Machine: uint16(m), Version: 1, Ehsize: 64, Phentsize: 56, Phoff: 64}
	copy(h.Ident[:], "\x7fELF\x02\x01\x01")
	p := elf.Prog64{Type: uint32(elf.PT_INTERP)}
	var out bytes.Buffer
	if dynamic {
		h.Phnum = 1
	}
	binary.Write(&out, binary.LittleEndian, h)
	binary.Write(&out, binary.LittleEndian, p)
	out.WriteString(text)
	return out.Bytes()
}

// write writes files into a new directory.
func write(t *testing.T, files map[string][]byte) string {
	t.Helper()
	dir := t.TempDir()
	for name, b := range files {
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// example returns the bundle of a host of the example cluster.
func example(t *testing.T, host, text string) Bundle {
	t.Helper()
	var b Bundle
	for _, kind := range []string{document.DocManifest, document.DocPolicy} {
		d, err := document.Read(filepath.Join("../../../tests/golden/compiler/example/expected", host), kind)
		if err == nil {
			b.Documents = append(b.Documents, d)
		}
	}
	if len(b.Documents) == 0 {
		t.Fatalf("no documents of %s", host)
	}
	bin := write(t, map[string][]byte{"flor": program(elf.EM_X86_64, false, text), "flor-provider": program(elf.EM_X86_64, false, text)})
	var err error
	if b.Programs, err = readPrograms(bin, needed(b.Documents), "x86_64-linux"); err != nil {
		t.Fatal(err)
	}
	b.Units = units("", text)
	return b
}

func units(m hostdir.Instance, text string) compile.Units {
	return compile.Units{
		Instance: m,
		Files: map[string]string{
			m.Unit("activate.service"):         "[Service]\nExecStart=" + text + "\n\n[Install]\nWantedBy=multi-user.target\n",
			m.Unit("need-" + text + ".path"):   "[Path]\n\n[Install]\nWantedBy=paths.target\n",
			m.Unit("need-" + text + ".target"): "[Unit]\n",
		},
		Sysusers: "u " + m.String() + " -\n",
		Sysctl:   "-net.core.rmem_max = 1\n",
	}
}

// blue returns the bundle of the same host in cluster blue, under this instance.
func blue(t *testing.T, m hostdir.Instance, host, text string) Bundle {
	t.Helper()
	b := rename(t, example(t, host, text), `"cluster":"demo"`, `"cluster":"blue"`, "demo.flor", "blue.flor")
	b.Units = units(m, text)
	return b
}

// rename replaces words in the documents of a bundle.
func rename(t *testing.T, b Bundle, oldnew ...string) Bundle {
	t.Helper()
	replacer := strings.NewReplacer(oldnew...)
	for i, d := range b.Documents {
		envelope, body, _ := d.Bytes()
		body = []byte(replacer.Replace(string(body)))
		text := strings.ReplaceAll(replacer.Replace(string(envelope)), d.Envelope.Digest, document.Digest(body))
		var err error
		if b.Documents[i], err = document.Open([]byte(text), body, ""); err != nil {
			t.Fatal(err)
		}
	}
	return b
}

func TestReadProgramsRefuses(t *testing.T) {
	bin := write(t, map[string][]byte{
		"static": program(elf.EM_X86_64, false, ""), "dynamic": program(elf.EM_X86_64, true, ""),
		"arm": program(elf.EM_AARCH64, false, ""), "script": []byte("#!/bin/sh\n"),
	})
	for want, names := range map[string][]string{
		"no program " + bin + "/none: build it with CGO_ENABLED=0": {"static", "none"},
		"linked dynamically: build it with CGO_ENABLED=0":          {"dynamic"},
		"not a Linux program":                   {"script"},
		"arm: for EM_AARCH64, but static is fo": {"static", "arm"},
	} {
		if _, err := readPrograms(bin, names, ""); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %q", names, err, want)
		}
	}
}

func TestReadProgramsOfAnotherSystem(t *testing.T) {
	bin := write(t, map[string][]byte{"flor": program(elf.EM_X86_64, false, ""), "arm": program(elf.EM_AARCH64, false, "")})
	for system, name := range map[string]string{"x86_64-linux": "flor", "aarch64-linux": "arm"} {
		if _, err := readPrograms(bin, []string{name}, system); err != nil {
			t.Errorf("%s: %v", system, err)
		}
	}
	want := bin + `/flor: for EM_X86_64, but the topology declares the host's system "aarch64-linux": build it with CGO_ENABLED=0 GOARCH=arm64 go build -trimpath`
	if _, err := readPrograms(bin, []string{"flor"}, "aarch64-linux"); err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

// TestTarWithout checks that an archive without programs has everything else, and the version of the
// whole bundle.
func TestTarWithout(t *testing.T) {
	b := example(t, "ursula", "one")
	digests := b.Programs.Digests()
	if len(digests) != 1 || len(digests["flor"]) != 64 {
		t.Errorf("digests %q, want one of flor", digests)
	}
	unpacked := func(without ...string) map[string]string {
		var out bytes.Buffer
		if err := b.WriteTarWithout(&out, without); err != nil {
			t.Fatal(err)
		}
		zip, err := gzip.NewReader(&out)
		if err != nil {
			t.Fatal(err)
		}
		all := map[string]string{}
		for r := tar.NewReader(zip); ; {
			h, err := r.Next()
			if err == io.EOF {
				return all
			}
			if err != nil {
				t.Fatal(err)
			}
			data, err := io.ReadAll(r)
			if err != nil {
				t.Fatal(err)
			}
			if h.Typeflag == tar.TypeReg {
				all[h.Name] = string(data)
			}
		}
	}
	want, got := unpacked(), unpacked("flor")
	if _, found := want["florete-ursula/bin/flor"]; !found {
		t.Error("the whole bundle has no bin/flor")
	}
	delete(want, "florete-ursula/bin/flor")
	if !maps.Equal(got, want) {
		t.Errorf("got %q, want %q", slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(want)))
	}
}

func TestTar(t *testing.T) {
	b := example(t, "ursula", "one")
	var out, again bytes.Buffer
	if err := b.WriteTar(&out); err != nil {
		t.Fatal(err)
	}
	if err := example(t, "ursula", "one").WriteTar(&again); err != nil || !bytes.Equal(out.Bytes(), again.Bytes()) {
		t.Errorf("the same host gives other bytes: %v", err)
	}
	zip, err := gzip.NewReader(&out)
	if err != nil {
		t.Fatal(err)
	}
	var names, manual []string
	for r := tar.NewReader(zip); ; {
		h, err := r.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if h.Uid != 0 || !h.ModTime.Equal(b.time()) {
			t.Errorf("%s: uid %d, time %s", h.Name, h.Uid, h.ModTime)
		}
		if name := fmt.Sprintf("%04o %s", h.Mode, h.Name); strings.HasPrefix(name, "0644 florete-ursula/man/") {
			manual = append(manual, path.Base(h.Name))
		} else {
			names = append(names, name)
		}
	}
	// The names of pages of flor-provider, which ursula does not run, begin with flor too.
	if !slices.Contains(manual, "flor-ping.1") || slices.Contains(manual, "flor-provider.1") {
		t.Errorf("manual pages %q", manual)
	}
	want := []string{
		"0755 florete-ursula/", "0755 florete-ursula/bin/", "0755 florete-ursula/bin/flor",
		"0755 florete-ursula/documents/", "0644 florete-ursula/documents/manifest.envelope.json", "0644 florete-ursula/documents/manifest.json",
		"0644 florete-ursula/florete.sysctl", "0644 florete-ursula/florete.sysusers", "0755 florete-ursula/install.sh", "0755 florete-ursula/man/",
		"0755 florete-ursula/units/", "0644 florete-ursula/units/florete-activate.service", "0644 florete-ursula/units/florete-need-one.path",
		"0644 florete-ursula/units/florete-need-one.target", "0644 florete-ursula/version",
	}
	if !slices.Equal(names, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(names, "\n"), strings.Join(want, "\n"))
	}
	if other := example(t, "ursula", "two"); other.Version() == b.Version() {
		t.Error("other programs have the same version")
	}
}
