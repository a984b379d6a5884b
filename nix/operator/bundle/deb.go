package bundle

import (
	"bytes"
	"crypto/md5"
	"debug/elf"
	_ "embed"
	"fmt"
	"io"
	"path"
	"strings"
)

// The maintainer scripts (Debian Policy, chapter 6). In them @NAME@ stands for the prefix of the
// package's names on the host, @UNITS@ for the units that are enabled, and @CLUSTER@ for the
// cluster and its trust domain.
var (
	//go:embed deb/preinst
	preinst string
	//go:embed deb/postinst
	postinst string
	//go:embed deb/prerm
	prerm string
	//go:embed deb/postrm
	postrm string
)

// architectures maps architectures to Debian's names.
var architectures = map[elf.Machine]string{elf.EM_X86_64: "amd64", elf.EM_AARCH64: "arm64", elf.EM_RISCV: "riscv64", elf.EM_386: "i386", elf.EM_ARM: "armhf"}

// WriteDeb writes the bundle to w as a Debian package (deb(5)) named florete or florete-<instance>.
// Call it only for a bundle that was read with BinDeb. If Debian does not have the architecture of
// the programs, WriteDeb returns an error.
func (b Bundle) WriteDeb(w io.Writer) error {
	arch, ok := architectures[b.Programs.Machine]
	if !ok {
		return fmt.Errorf("programs for %s: Debian has no such architecture: use the tar.gz", b.Programs.Machine)
	}
	m := b.Documents[0].Manifest()
	name, bin, documents := b.name(), BinDeb(b.Units.Instance), path.Join("/usr/share", b.name(), "documents")
	data := append(b.place(bin[1:], "usr/share/man/man1", documents[1:], "usr/lib/systemd/system"),
		file{path: "etc/" + name + "/documents", target: documents},
		file{path: "usr/lib/sysctl.d/60-" + name + ".conf", data: []byte(b.Units.Sysctl), mode: 0o644},
		file{path: "usr/lib/sysusers.d/" + name + ".conf", data: []byte(b.Units.Sysusers), mode: 0o644},
	)
	for program := range b.Programs.files {
		if called := b.Units.Instance.Program(program); called != program {
			data = append(data, file{path: "usr/bin/" + called, target: path.Join(bin, program)})
		}
	}
	control := b.control(arch, m.TrustDomain, sorted(data))

	var controlTar, dataTar bytes.Buffer
	if err := writeTar(&controlTar, sorted(control), "./", b.time()); err != nil {
		return err
	}
	if err := writeTar(&dataTar, data, "./", b.time()); err != nil {
		return err
	}
	var out bytes.Buffer
	out.WriteString("!<arch>\n")
	for _, m := range []struct {
		name string
		data []byte
	}{{"debian-binary", []byte("2.0\n")}, {"control.tar.gz", controlTar.Bytes()}, {"data.tar.gz", dataTar.Bytes()}} {
		fmt.Fprintf(&out, "%-16s%-12d%-6d%-6d%-8o%-10d`\n", m.name, b.time().Unix(), 0, 0, 0o100644, len(m.data))
		out.Write(m.data)
		if len(m.data)%2 == 1 {
			out.WriteByte('\n')
		}
	}
	_, err := out.WriteTo(w)
	return err
}

func (b Bundle) control(arch, trustDomain string, data []file) []file {
	e := b.envelope()
	size, sums := 0, ""
	for _, f := range data {
		size += len(f.data)
		if f.target == "" {
			sums += fmt.Sprintf("%x  %s\n", md5.Sum(f.data), f.path)
		}
	}
	// A version begins with a digit and contains no hyphen unless it has a revision.
	text := fmt.Sprintf(`Package: %s
Version: %s
Architecture: %s
Maintainer: operator of cluster %s <root@%[4]s>
Installed-Size: %d
Depends: systemd
Recommends: nftables
Section: net
Priority: optional
Description: host %s of cluster %[4]s
 The documents of this host, the programs that it runs on and their units.
`, strings.ReplaceAll(b.name(), "_", "-"), strings.ReplaceAll(b.Version(), "-", "+"), arch, e.Cluster, (size+1023)/1024, e.Host)
	told := strings.NewReplacer(
		"@NAME@", b.name(),
		"@FLOR@", b.Units.Instance.Program("flor"),
		"@UNITS@", strings.Join(b.Units.Enabled(), " "),
		"@CLUSTER@", fmt.Sprintf("%s (%s)", e.Cluster, trustDomain))
	script := func(name, text string) file {
		return file{path: name, data: []byte(told.Replace(text)), mode: 0o755}
	}
	return []file{
		{path: "control", data: []byte(text), mode: 0o644},
		{path: "md5sums", data: []byte(sums), mode: 0o644},
		script("preinst", preinst), script("postinst", postinst), script("prerm", prerm), script("postrm", postrm),
	}
}
