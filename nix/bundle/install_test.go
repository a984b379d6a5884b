package bundle

import (
	"bytes"
	"cmp"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// machine is a root that install.sh installs into. The programs it changes things
// with can be told to fail.
type machine struct {
	*testing.T
	root, shims string
}

// shim runs the program it stands for, but for the call that is to fail. It keeps
// systemd's programs to what they are told.
const shim = `#!/bin/sh
name=${0##*/}
echo x >>"$SHIMS/calls"
[ "$(wc -l <"$SHIMS/calls")" != "$FAIL" ] || { echo "$name fails" >&2; exit 1; }
case $name in
systemctl | systemd-sysusers) echo "$name $*" >>"$SHIMS/told" ;;
*) PATH=$REAL exec $name "$@" ;;
esac
`

func newMachine(t *testing.T) *machine {
	m := &machine{T: t, root: t.TempDir()}
	shims := map[string][]byte{}
	for _, name := range []string{"mkdir", "cp", "mv", "ln", "rm", "systemctl", "systemd-sysusers"} {
		shims[name] = []byte(shim)
	}
	m.shims = write(t, shims)
	manifest, err := example(t, "ursula", "").Documents[0].Manifest()
	if err != nil {
		t.Fatal(err)
	}
	m.write("etc/ssh/ssh_host_ed25519_key.pub", manifest.Identity.SSHHostKey+" root@ursula\n")
	return m
}

// clone is another machine like m.
func (m *machine) clone() *machine {
	m.Helper()
	c := *m
	c.root = m.TempDir()
	if out, err := exec.Command("cp", "-a", m.root+"/.", c.root).CombinedOutput(); err != nil {
		m.Fatalf("cp: %v\n%s", err, out)
	}
	return &c
}

func (m *machine) write(path, text string) {
	m.Helper()
	path = filepath.Join(m.root, path)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		m.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		m.Fatal(err)
	}
}

// run runs a script; the fail-th program that it calls fails, 0 for none.
func (m *machine) run(script string, fail int, args ...string) (string, error) {
	os.Remove(filepath.Join(m.shims, "calls"))
	os.Remove(filepath.Join(m.shims, "told"))
	cmd := exec.Command("sh", append([]string{script, "--root", m.root}, args...)...)
	cmd.Env = []string{"PATH=" + m.shims + ":" + os.Getenv("PATH"), "REAL=" + os.Getenv("PATH"), "SHIMS=" + m.shims, fmt.Sprintf("FAIL=%d", fail)}
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// want runs a script that must succeed and print text at last.
func (m *machine) want(text, script string, args ...string) string {
	m.Helper()
	out, err := m.run(script, 0, args...)
	if err != nil || !strings.Contains(out, text) {
		m.Fatalf("%s %s: %v, want %q\n%s", script, args, err, text, out)
	}
	return out
}

// calls is how many programs the last run called.
func (m *machine) calls() int {
	b, _ := os.ReadFile(filepath.Join(m.shims, "calls"))
	return bytes.Count(b, []byte("x"))
}

func (m *machine) told() string {
	b, _ := os.ReadFile(filepath.Join(m.shims, "told"))
	return strings.ReplaceAll(string(b), m.root, "ROOT")
}

// tree is everything in the root: paths with contents or targets.
func (m *machine) tree() string {
	m.Helper()
	var out strings.Builder
	err := filepath.WalkDir(m.root, func(path string, d fs.DirEntry, err error) error {
		name := strings.TrimPrefix(path, m.root)
		switch {
		case err != nil:
			return err
		case d.Type() == fs.ModeSymlink:
			to, _ := os.Readlink(path)
			fmt.Fprintf(&out, "%s -> %s\n", name, to)
		case !d.IsDir():
			b, _ := os.ReadFile(path)
			info, _ := d.Info()
			fmt.Fprintf(&out, "%s %v %x\n", name, info.Mode(), b[:min(len(b), 8)])
		}
		return nil
	})
	if err != nil {
		m.Fatal(err)
	}
	return out.String()
}

// installed is where florete-install leads.
func (m *machine) installed() string {
	return filepath.Join(m.root, "usr/local/lib/florete/current/install.sh")
}

// unpack is a bundle as it lies on a host: its install.sh, and its version.
func unpack(t *testing.T, host, text string) (script, version string) {
	t.Helper()
	b := example(t, host, text)
	var out bytes.Buffer
	if err := b.WriteTar(&out); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	cmd := exec.Command("tar", "xz", "-C", dir)
	cmd.Stdin = &out
	if text, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("tar: %v\n%s", err, text)
	}
	return filepath.Join(dir, "florete-"+host, "install.sh"), b.Version()
}

func needRoot(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("NOT TESTED: install.sh wants root")
	}
}

func TestInstall(t *testing.T) {
	needRoot(t)
	m := newMachine(t)
	one, v1 := unpack(t, "ursula", "one")
	two, v2 := unpack(t, "ursula", "two")
	empty := m.tree()
	m.want("+ point "+v1, one, "--dry-run")
	if m.tree() != empty || m.told() != "" {
		t.Errorf("a dry run changed\n%s%s", m.tree(), m.told())
	}

	m.want("florete "+v1+": installed", one)
	first := m.tree()
	for _, want := range []string{
		"/usr/local/bin/flor -> /usr/local/lib/florete/current/bin/flor\n",
		"/usr/local/lib/florete/current -> " + v1 + "\n",
		"/etc/florete/documents -> /usr/local/lib/florete/current/documents\n",
		"/etc/systemd/system/florete-need-one.path -rw-r--r-- ",
		"/etc/sysctl.d/60-florete.conf -rw-r--r-- ",
	} {
		if !strings.Contains(first, want) {
			t.Errorf("no %q in\n%s", want, first)
		}
	}
	if want := "systemd-sysusers --root=ROOT florete.conf\nsystemctl --quiet --root=ROOT enable florete-activate.service florete-need-one.path\n"; m.told() != want {
		t.Errorf("told systemd\n%s", m.told())
	}
	m.want("florete "+v1+": nothing to do", one)
	m.want("florete "+v1+": nothing to do", m.installed())
	if m.calls() != 0 || m.tree() != first {
		t.Errorf("the second time %d programs ran", m.calls())
	}

	m.want("florete "+v2+": installed", two)
	second := m.tree()
	if strings.Contains(second, "system/florete-need-one.path") || !strings.Contains(second, "/previous -> "+v1+"\n") {
		t.Errorf("after the upgrade\n%s", second)
	}
	if !strings.Contains(m.told(), "disable florete-need-one.path\n") {
		t.Errorf("told systemd\n%s", m.told())
	}
	m.want("florete "+v1+": installed", m.installed(), "--rollback")
	if !strings.Contains(m.tree(), "/current -> "+v1+"\n") || !strings.Contains(m.tree(), "system/florete-need-one.path") {
		t.Errorf("after going back\n%s", m.tree())
	}
	m.want("florete "+v2+": installed", m.installed(), "--rollback")
	if m.tree() != second {
		t.Errorf("going back twice is not where it was:\n%s\n%s", m.tree(), second)
	}
	three, v3 := unpack(t, "ursula", "three")
	m.want("florete "+v3+": installed", three)
	if strings.Contains(m.tree(), v1) {
		t.Errorf("more than two versions are kept\n%s", m.tree())
	}

	m.write("var/lib/florete/needs/x", "")
	m.write("var/lib/florete-provider/issuing.key", "")
	m.want("kept "+m.root+"/var/lib/florete\nkept ", m.installed(), "--remove")
	if strings.Contains(m.tree(), "/usr/") || strings.Contains(m.tree(), "systemd") || strings.Contains(m.tree(), "sysctl") {
		t.Errorf("after removal\n%s", m.tree())
	}
	m.want("florete: removed", three, "--remove", "--purge")
	if strings.Contains(m.tree(), "lib/florete/") || !strings.Contains(m.tree(), "issuing.key") {
		t.Errorf("after the purge\n%s", m.tree())
	}
	m.want("florete: removed", three, "--remove")
	if m.calls() != 0 {
		t.Errorf("removing nothing ran %d programs", m.calls())
	}
}

// TestCutShort lets every program that a run calls fail, one at a time; the next
// run must finish what was begun.
func TestCutShort(t *testing.T) {
	needRoot(t)
	one, _ := unpack(t, "ursula", "one")
	two, _ := unpack(t, "ursula", "two")
	for name, c := range map[string]struct {
		before []string // what is run first
		script string   // empty for the one installed
		args   []string
	}{
		"install":  {script: one},
		"upgrade":  {before: []string{one}, script: two},
		"rollback": {before: []string{one, two}, args: []string{"--rollback"}},
		"remove":   {before: []string{one}, script: two, args: []string{"--remove"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			before := newMachine(t)
			for _, script := range c.before {
				before.want("installed", script)
			}
			script := func(m *machine) string { return cmp.Or(c.script, m.installed()) }
			whole := before.clone()
			whole.want("", script(whole), c.args...)
			steps, want := whole.calls(), whole.tree()
			if steps < 10 {
				t.Fatalf("only %d steps", steps)
			}
			for n := 1; n <= steps; n++ {
				m := before.clone()
				if out, err := m.run(script(m), n, c.args...); err == nil {
					t.Fatalf("step %d: its failure was not noticed\n%s", n, out)
				}
				m.want("", script(m), c.args...)
				if m.tree() != want {
					t.Fatalf("cut at step %d, then finished:\n%s\nwant\n%s", n, m.tree(), want)
				}
				if name != "remove" && !strings.Contains(m.told(), "enable florete-") {
					t.Errorf("cut at step %d: the second run told systemd %q", n, m.told())
				}
			}
		})
	}
}

func TestInstallRefuses(t *testing.T) {
	needRoot(t)
	m := newMachine(t)
	script, _ := unpack(t, "ursula", "one")
	other, _ := unpack(t, "raishan", "one")
	for want, args := range map[string][]string{
		"--twice: no such option":                        {script, "--twice"},
		"--purge: only with --remove":                    {script, "--purge"},
		"there is no version before":                     {script, "--rollback"},
		"this bundle is of another host":                 {other},
		"want a directory":                               {script, "--root"},
		"etc/florete/documents is a directory, not ours": {script},
	} {
		if strings.Contains(want, "not ours") {
			m.write("etc/florete/documents/manifest.json", "mine")
		}
		if out, err := m.run(args[0], 0, args[1:]...); err == nil || !strings.Contains(out, want) {
			t.Errorf("%q: %v, want %q\n%s", args[1:], err, want, out)
		}
		os.RemoveAll(filepath.Join(m.root, "etc/florete"))
		os.RemoveAll(filepath.Join(m.root, "usr"))
	}
	m.want("installed", other, "--any-host")
}
