package bundle

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/florete/florete/internal/hostdir"
	"github.com/florete/florete/tests/kit"
)

// machine is a root directory into which install.sh installs. The programs that change it can be
// made to fail.
type machine struct {
	*testing.T
	root, shims string
}

// functions stand for the programs that install.sh calls. Each runs its program, except for the call
// that is to fail. For systemd's programs it only records the arguments. A function takes no process
// of its own.
const functions = `
shim() {
	read -r calls <"$SHIMS/calls"
	echo $((calls += 1)) >"$SHIMS/calls"
	[ $calls != "$FAIL" ] || { echo "$1 fails" >&2; return 1; }
	case $1 in
	systemctl | systemd-sysusers) echo "$*" >>"$SHIMS/told" ;;
	*) command "$@" ;;
	esac
}
mkdir() { shim mkdir "$@"; }
cp() { shim cp "$@"; }
mv() { shim mv "$@"; }
ln() { shim ln "$@"; }
rm() { shim rm "$@"; }
systemctl() { shim systemctl "$@"; }
`

// sysusers is a program, since a function has no hyphen in its name.
const sysusers = `#!/bin/sh
. "$SHIMS/functions"
shim systemd-sysusers "$@"
`

func shims(t *testing.T) string {
	return write(t, map[string][]byte{"functions": []byte(functions), "systemd-sysusers": []byte(sysusers)})
}

func newMachine(t *testing.T) *machine {
	m := &machine{t, kit.MemoryDir(t), shims(t)}
	manifest := example(t, "drhorrible", "").Documents[0].Manifest()
	m.write("etc/ssh/ssh_host_ed25519_key.pub", manifest.Identity.SSHHostKey+" root@drhorrible\n")
	return m
}

// clone returns another machine like m.
func (m *machine) clone(t *testing.T) *machine {
	t.Helper()
	c := &machine{t, kit.MemoryDir(t), shims(t)}
	if out, err := exec.Command("cp", "-a", m.root+"/.", c.root).CombinedOutput(); err != nil {
		m.Fatalf("cp: %v\n%s", err, out)
	}
	return c
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

// run runs a script. The program call number fail fails; 0 means none.
func (m *machine) run(script string, fail int, args ...string) (string, error) {
	if err := os.WriteFile(filepath.Join(m.shims, "calls"), []byte("0\n"), 0o644); err != nil {
		m.Fatal(err)
	}
	os.Remove(filepath.Join(m.shims, "told"))
	cmd := exec.Command("sh", append([]string{"-c", `. "$SHIMS/functions"; . "$0"`, script, "--root", m.root}, args...)...)
	cmd.Env = []string{"PATH=" + m.shims + ":" + os.Getenv("PATH"), "SHIMS=" + m.shims, fmt.Sprintf("FAIL=%d", fail)}
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// want runs a script that must succeed and print text at the end.
func (m *machine) want(text, script string, args ...string) string {
	m.Helper()
	out, err := m.run(script, 0, args...)
	if err != nil || !strings.Contains(out, text) {
		m.Fatalf("%s %s: %v, want %q\n%s", script, args, err, text, out)
	}
	return out
}

// calls returns the number of programs that the last run called.
func (m *machine) calls() int {
	b, err := os.ReadFile(filepath.Join(m.shims, "calls"))
	if err != nil {
		m.Fatal(err)
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(b)))
	if err != nil {
		m.Fatal(err)
	}
	return n
}

func (m *machine) told() string {
	b, _ := os.ReadFile(filepath.Join(m.shims, "told"))
	return strings.ReplaceAll(string(b), m.root, "ROOT")
}

// tree returns everything in the root: paths with contents or targets.
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

// installed returns the target of florete-install.
func (m *machine) installed(of hostdir.Instance) string {
	return filepath.Join(m.root, "usr/local/lib", of.String(), "current/install.sh")
}
