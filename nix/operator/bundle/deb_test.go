package bundle

import (
	"bytes"
	"debug/elf"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// pack writes a package twice, and checks that the bytes are equal.
func pack(t *testing.T, b Bundle) (path string) {
	t.Helper()
	if _, err := exec.LookPath("dpkg-deb"); err != nil {
		t.Skip("NOT RUN: no dpkg-deb here")
	}
	var out, again bytes.Buffer
	if err := b.WriteDeb(&out); err != nil {
		t.Fatal(err)
	}
	if err := b.WriteDeb(&again); err != nil || !bytes.Equal(out.Bytes(), again.Bytes()) {
		t.Errorf("the same host gives other bytes: %v", err)
	}
	return filepath.Join(write(t, map[string][]byte{"florete.deb": out.Bytes()}), "florete.deb")
}

func dpkgDeb(t *testing.T, args ...string) string {
	t.Helper()
	b, err := exec.Command("dpkg-deb", args...).CombinedOutput()
	if err != nil {
		t.Fatalf("dpkg-deb %s: %v\n%s", args, err, b)
	}
	return string(b)
}

// TestDeb inspects the package with dpkg.
func TestDeb(t *testing.T) {
	deb := pack(t, example(t, "drhorrible", "one"))
	if got := dpkgDeb(t, "--field", deb, "Package", "Architecture", "Depends", "Description"); got != `Package: florete
Architecture: amd64
Depends: systemd
Description: host drhorrible of cluster demo
 The documents of this host, the programs that it runs on and their units.
` {
		t.Errorf("control:\n%s", got)
	}
	if got, want := strings.TrimSpace(dpkgDeb(t, "--field", deb, "Version")), strings.Replace(example(t, "drhorrible", "one").Version(), "-", "+", 1); got != want {
		t.Errorf("version %s, want %s", got, want)
	}
	for _, want := range []string{
		"./usr/bin/flor-provider\n", "./usr/share/man/man1/flor-ping.1\n", "./usr/share/man/man1/flor-provider-audit.1\n", "./etc/florete/documents -> /usr/share/florete/documents\n", "./usr/share/florete/documents/policy.json\n",
		"./usr/lib/systemd/system/florete-activate.service\n", "./usr/lib/sysusers.d/florete.conf\n", "./usr/lib/sysctl.d/60-florete.conf\n",
	} {
		if list := dpkgDeb(t, "--contents", deb); !strings.Contains(list, want) {
			t.Errorf("no %q in\n%s", want, list)
		}
	}
	dir := t.TempDir()
	dpkgDeb(t, "--raw-extract", deb, dir)
	check := exec.Command("md5sum", "--check", "--quiet", "DEBIAN/md5sums")
	check.Dir = dir
	if b, err := check.CombinedOutput(); err != nil {
		t.Errorf("md5sums: %v\n%s", err, b)
	}
	for _, name := range []string{"preinst", "postinst", "prerm", "postrm"} {
		text, err := os.ReadFile(filepath.Join(dir, "DEBIAN", name))
		if err != nil || bytes.Contains(text, []byte("@")) {
			t.Errorf("%s: %v\n%s", name, err, text)
		}
		if b, err := exec.Command("sh", "-n", filepath.Join(dir, "DEBIAN", name)).CombinedOutput(); err != nil {
			t.Errorf("%s: %s", name, b)
		}
		if name == "postinst" && !bytes.Contains(text, []byte("enable florete-activate.service florete-need-one.path\n")) {
			t.Errorf("postinst enables something else:\n%s", text)
		}
	}
	other := example(t, "ursula", "one")
	other.Programs.Machine = elf.EM_68K
	if err := other.WriteDeb(io.Discard); err == nil || !strings.Contains(err.Error(), "use the tar.gz") {
		t.Errorf("an architecture that Debian has not: %v", err)
	}
}

// TestDebOfInstance checks that packages of two instances share no file, and that the scripts of
// one do not mention the other.
func TestDebOfInstance(t *testing.T) {
	one, other := pack(t, example(t, "ursula", "one")), pack(t, blue(t, "blue", "ursula", "one"))
	if got := dpkgDeb(t, "--field", other, "Package"); got != "florete-blue\n" {
		t.Errorf("package %s", got)
	}
	list := dpkgDeb(t, "--contents", other)
	for _, want := range []string{"./usr/lib/florete_blue/bin/flor\n", "./usr/bin/flor_blue -> /usr/lib/florete_blue/bin/flor\n", "./usr/share/man/man1/flor_blue-ping.1\n", "./usr/lib/systemd/system/florete_blue-activate.service\n"} {
		if !strings.Contains(list, want) {
			t.Errorf("no %q in\n%s", want, list)
		}
	}
	path := regexp.MustCompile(`(?m)^[^d].* (\./\S+)( ->.*)?$`)
	for _, line := range path.FindAllStringSubmatch(dpkgDeb(t, "--contents", one), -1) {
		if slices.ContainsFunc(path.FindAllStringSubmatch(list, -1), func(l []string) bool { return l[1] == line[1] }) {
			t.Errorf("%s is in both", line[1])
		}
	}
	for _, name := range []string{"postinst", "prerm", "postrm"} {
		text := dpkgDeb(t, "--info", other, name)
		if found := regexp.MustCompile(`.*(florete([^_]|_[^b])|/flor ).*`).FindString(text); found != "" {
			t.Errorf("%s is about another instance: %s", name, found)
		}
	}
}

// TestPreinst runs the script as dpkg does, with another /etc.
func TestPreinst(t *testing.T) {
	for name, c := range encounters(t) {
		etc := filepath.Join(t.TempDir(), "florete")
		documents := filepath.Join(strings.Replace(etc, "florete", c.there.name(), 1), "documents")
		if err := os.MkdirAll(documents, 0o755); err != nil {
			t.Fatal(err)
		}
		for _, d := range c.there.Documents {
			if err := d.Write(documents); err != nil {
				t.Fatal(err)
			}
		}
		m := c.comes.Documents[0].Manifest()
		control := c.comes.control("amd64", m.TrustDomain, nil)
		script := control[slices.IndexFunc(control, func(f file) bool { return f.path == "preinst" })]
		text := strings.ReplaceAll(string(script.data), "/etc/florete", etc)
		for _, action := range []string{"install", "upgrade"} {
			out, err := exec.Command("sh", "-c", text, "preinst", action).CombinedOutput()
			if (err != nil) != (c.refused != "") || !strings.Contains(string(out), c.refused) {
				t.Errorf("%s: %s: %v, want %q\n%s", name, action, err, c.refused, out)
			}
		}
		if out, err := exec.Command("sh", "-c", text, "preinst", "abort-upgrade").CombinedOutput(); err != nil {
			t.Errorf("%s: dpkg cannot go back: %v\n%s", name, err, out)
		}
	}
}

// TestPostinst checks that a unit that does not start leaves no half-configured package, and that
// the others are started.
func TestPostinst(t *testing.T) {
	b := example(t, "drhorrible", "one")
	control := b.control("amd64", "demo.flor", nil)
	script := control[slices.IndexFunc(control, func(f file) bool { return f.path == "postinst" })]
	dir := write(t, map[string][]byte{
		"systemctl":        []byte("#!/bin/sh\necho \"$*\" >>\"$0.told\"\ncase $* in *restart*activate*) exit 1 ;; esac\n"),
		"systemd-sysusers": []byte("#!/bin/sh\n"),
	})
	text := strings.NewReplacer("/run/systemd/system", dir, "/etc/systemd/system", dir).Replace(string(script.data))
	cmd := exec.Command("sh", "-c", text, "postinst", "configure")
	cmd.Env = []string{"PATH=" + dir + ":" + os.Getenv("PATH")}
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "florete: systemctl restart florete-activate.service florete-guard.service florete-hosts-file.service: not all have started: systemctl --failed, and flor doctor, say why\n") {
		t.Errorf("%v\n%s", err, out)
	}
	told, err := os.ReadFile(filepath.Join(dir, "systemctl.told"))
	if err != nil || !strings.Contains(string(told), "try-reload-or-restart florete-agent.service\n") {
		t.Errorf("%v: after a unit that did not start:\n%s", err, told)
	}
}
