package bundle

import (
	"bytes"
	"cmp"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/florete/florete/internal/hostdir"
)

// unpack unpacks a bundle as on a host, and returns its install.sh and its version.
func unpack(t *testing.T, b Bundle) (script, version string) {
	t.Helper()
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
	return filepath.Join(dir, b.name()+"-"+b.envelope().Host, "install.sh"), b.Version()
}

func needRoot(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("NOT RUN: install.sh wants root")
	}
}

// instances are the instances of a host, each with a function that makes its bundles.
var instances = map[hostdir.Instance]func(*testing.T, string) Bundle{
	"":     func(t *testing.T, text string) Bundle { return example(t, "drhorrible", text) },
	"blue": func(t *testing.T, text string) Bundle { return blue(t, "blue", "drhorrible", text) },
}

// beside runs a test for each instance of a host, on a machine where the other one is installed.
func beside(t *testing.T, test func(t *testing.T, m *machine, of hostdir.Instance)) {
	if testing.Short() {
		t.Skip("left out by -short: it takes long")
	}
	needRoot(t)
	for of := range instances {
		t.Run(of.String(), func(t *testing.T) {
			m := newMachine(t)
			for other, bundle := range instances {
				if other != of {
					script, _ := unpack(t, bundle(t, "beside"))
					m.want("installed", script)
				}
			}
			test(t, m, of)
		})
	}
}

func TestInstall(t *testing.T) { beside(t, testInstall) }

func testInstall(t *testing.T, m *machine, of hostdir.Instance) {
	name, bundle := of.String(), instances[of]
	one, v1 := unpack(t, bundle(t, "one"))
	two, v2 := unpack(t, bundle(t, "two"))
	// The second version has no such page. The other page was never part of a bundle.
	ping := of.Program("flor") + "-ping.1"
	if err := os.Remove(filepath.Join(filepath.Dir(two), "man", ping)); err != nil {
		t.Fatal(err)
	}
	m.write("usr/local/share/man/man1/florctl.1", "mine")
	empty := m.tree()
	m.want("+ point "+v1, one, "--dry-run")
	if m.tree() != empty || m.told() != "" {
		t.Errorf("a dry run changed\n%s%s", m.tree(), m.told())
	}

	m.want(name+" "+v1+": installed", one)
	first := m.tree()
	for _, want := range []string{
		"/usr/local/bin/" + of.Program("flor") + " -> /usr/local/lib/" + name + "/current/bin/flor\n",
		"/usr/local/share/man/man1/" + ping + " -> /usr/local/lib/" + name + "/current/man/" + ping + "\n",
		"/usr/local/share/man/man1/" + of.Program("flor-provider") + ".1 -> /usr/local/lib/" + name + "/current/man/" + of.Program("flor-provider") + ".1\n",
		"/" + v1 + "/man/" + ping + " -rw-r--r-- ",
		"/usr/local/lib/" + name + "/current -> " + v1 + "\n",
		"/etc/" + name + "/documents -> /usr/local/lib/" + name + "/documents\n",
		"/usr/local/lib/" + name + "/documents -> " + v1 + "/documents\n",
		"/etc/systemd/system/" + name + "-need-one.path -rw-r--r-- ",
		"/etc/sysctl.d/60-" + name + ".conf -rw-r--r-- ",
	} {
		if !strings.Contains(first, want) {
			t.Errorf("no %q in\n%s", want, first)
		}
	}
	want := strings.ReplaceAll("systemd-sysusers --root=ROOT florete.conf\nsystemctl --quiet --root=ROOT enable florete-activate.service florete-need-one.path\n", "florete", name)
	if m.told() != want {
		t.Errorf("told systemd\n%s", m.told())
	}
	m.want(name+" "+v1+": nothing to do", one)
	m.want(name+" "+v1+": nothing to do", m.installed(of))
	if m.calls() != 0 || m.tree() != first {
		t.Errorf("the second time %d programs ran", m.calls())
	}

	m.want(name+" "+v2+": installed", two)
	second := m.tree()
	if strings.Contains(second, "system/"+name+"-need-one.path") || strings.Contains(second, "man1/"+ping) || !strings.Contains(second, "/previous -> "+v1+"\n") {
		t.Errorf("after the upgrade\n%s", second)
	}
	if !strings.Contains(m.told(), "disable "+name+"-need-one.path "+name+"-need-one.target\n") {
		t.Errorf("told systemd\n%s", m.told())
	}
	m.want(name+" "+v1+": installed", m.installed(of), "--rollback")
	if !strings.Contains(m.tree(), "/current -> "+v1+"\n") || !strings.Contains(m.tree(), "system/"+name+"-need-one.path") || !strings.Contains(m.tree(), "man1/"+ping) {
		t.Errorf("after going back\n%s", m.tree())
	}
	if !strings.Contains(m.tree(), "/documents -> "+v2+"/documents\n") || !strings.Contains(m.tree(), "/previous -> "+v2+"\n") {
		t.Errorf("going back brought other documents\n%s", m.tree())
	}
	m.want(name+" "+v2+": installed", m.installed(of), "--rollback")
	if m.tree() != second {
		t.Errorf("going back twice is not where it was:\n%s\n%s", m.tree(), second)
	}
	// Without the link, the documents of the running version are in force.
	if err := os.Remove(filepath.Join(m.root, "usr/local/lib", name, "documents")); err != nil {
		t.Fatal(err)
	}
	m.want(name+" "+v1+": installed", m.installed(of), "--rollback")
	if !strings.Contains(m.tree(), "/documents -> "+v2+"/documents\n") {
		t.Errorf("going back without the link brought other documents\n%s", m.tree())
	}
	m.want(name+" "+v2+": installed", m.installed(of), "--rollback")
	three, v3 := unpack(t, bundle(t, "three"))
	m.want(name+" "+v3+": installed", three)
	if strings.Contains(m.tree(), v1) {
		t.Errorf("more than two versions are kept\n%s", m.tree())
	}

	m.want(name+" "+v2+": installed", filepath.Join(m.root, "usr/local/lib", name, "previous/install.sh"))
	if !strings.Contains(m.tree(), "/documents -> "+v2+"/documents\n") {
		t.Errorf("the version before was installed anew, with other documents\n%s", m.tree())
	}

	m.write("var/lib/"+name+"/needs/x", "")
	m.write("var/lib/"+of.Unit("provider")+"/issuing.key", "")
	m.want("kept "+m.root+"/var/lib/"+name+"\nkept ", m.installed(of), "--remove")
	if !strings.Contains(m.tree(), "/needs/x ") || without(m.tree(), "/var/lib/"+name) != empty {
		t.Errorf("after removal\n%s", m.tree())
	}
	m.want(name+": removed", three, "--remove", "--purge")
	if !strings.Contains(m.tree(), "/issuing.key ") || without(m.tree(), "/var/lib/"+of.Unit("provider")) != empty {
		t.Errorf("after the purge\n%s", m.tree())
	}
	m.want(name+": removed", three, "--remove")
	if m.calls() != 0 {
		t.Errorf("removing nothing ran %d programs", m.calls())
	}
}

// without returns a tree without the entries below a path.
func without(tree, path string) string {
	return regexp.MustCompile(`(?m)^`+regexp.QuoteMeta(path)+`.*\n`).ReplaceAllString(tree, "")
}

// TestCutShort makes each program that a run calls fail, one at a time. The next run must finish
// the work.
func TestCutShort(t *testing.T) { beside(t, testCutShort) }

func testCutShort(t *testing.T, fresh *machine, of hostdir.Instance) {
	one, _ := unpack(t, instances[of](t, "one"))
	two, _ := unpack(t, instances[of](t, "two"))
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
			before := fresh.clone(t)
			for _, script := range c.before {
				before.want("installed", script)
			}
			script := func(m *machine) string { return cmp.Or(c.script, m.installed(of)) }
			whole := before.clone(t)
			whole.want("", script(whole), c.args...)
			steps, want := whole.calls(), whole.tree()
			if steps < 10 {
				t.Fatalf("only %d steps", steps)
			}
			apart := 1
			if of != "" { // its names alone are others
				apart = 5
			}
			for n := 1; n <= steps; n += apart {
				m := before.clone(t)
				if out, err := m.run(script(m), n, c.args...); err == nil {
					t.Fatalf("step %d: its failure was not noticed\n%s", n, out)
				}
				m.want("", script(m), c.args...)
				if m.tree() != want {
					t.Fatalf("cut at step %d, then finished:\n%s\nwant\n%s", n, m.tree(), want)
				}
				if name != "remove" && !strings.Contains(m.told(), "enable "+of.Unit("")) {
					t.Errorf("cut at step %d: the second run told systemd %q", n, m.told())
				}
			}
		})
	}
}

// TestUndoneAfterCut checks that after a run that was cut short at any step and undone, by
// installing the previous bundle, an earlier version is left to return to.
func TestUndoneAfterCut(t *testing.T) {
	needRoot(t)
	before := newMachine(t)
	scripts, versions := map[string]string{}, map[string]string{}
	for _, text := range []string{"one", "two", "three"} {
		scripts[text], versions[text] = unpack(t, example(t, "drhorrible", text))
	}
	before.want("installed", scripts["one"])
	before.want("installed", scripts["two"])
	for name, args := range map[string][]string{
		"rollback": {before.installed(""), "--rollback"},
		"upgrade":  {scripts["three"]},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			whole := before.clone(t)
			script := func(m *machine) string { return strings.Replace(args[0], before.root, m.root, 1) }
			whole.want("installed", script(whole), args[1:]...)
			for n := 1; n <= whole.calls(); n++ {
				m := before.clone(t)
				m.run(script(m), n, args[1:]...)
				m.want("", scripts["two"])
				current, _ := os.Readlink(filepath.Join(m.root, "usr/local/lib/florete/current"))
				previous, err := os.Readlink(filepath.Join(m.root, "usr/local/lib/florete/previous"))
				if err != nil || current != versions["two"] || previous == current {
					t.Errorf("cut at step %d, then undone: version %s, %s before that, %v", n, current, previous, err)
				}
				if _, err := os.Stat(filepath.Join(m.root, "usr/local/lib/florete/previous/install.sh")); err != nil {
					t.Errorf("cut at step %d, then undone: nothing to go back to: %v", n, err)
				}
			}
		})
	}
}

func TestInstallRefuses(t *testing.T) {
	needRoot(t)
	m := newMachine(t)
	script, _ := unpack(t, example(t, "drhorrible", "one"))
	other, _ := unpack(t, example(t, "raishan", "one"))
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

// joining returns a bundle of a host that joins: its documents declare no SSH host key.
func joining(t *testing.T, host, text string) Bundle {
	b := example(t, host, text)
	return rename(t, b, `"sshHostKey":"`+b.Documents[0].Manifest().Identity.SSHHostKey+`"`, `"joins":true`)
}

// TestInstallJoins checks that a host that joins installs its bundle whatever its SSH host key is,
// and later only bundles of its own.
func TestInstallJoins(t *testing.T) {
	needRoot(t)
	m := newMachine(t)
	for _, text := range []string{"one", "two"} {
		script, _ := unpack(t, joining(t, "ursula", text))
		m.want("installed", script)
	}
	other, _ := unpack(t, joining(t, "raishan", "one"))
	if out, err := m.run(other, 0); err == nil || !strings.Contains(out, "this bundle is of another host: it is of raishan, and ursula is installed here") {
		t.Errorf("%v\n%s", err, out)
	}
	m.want("installed", other, "--any-host")
}

// encounter is a bundle that is installed where another one is, and the reason for which it is
// refused, if any.
type encounter struct {
	there, comes Bundle
	refused      string
}

func encounters(t *testing.T) map[string]encounter {
	demo := example(t, "drhorrible", "one")
	return map[string]encounter{
		"two clusters": {demo, blue(t, "blue", "drhorrible", "two"), ""},
		"another cluster, of the same name": {demo, blue(t, "", "drhorrible", "two"),
			"cluster demo (demo.flor) is here as florete, and so would be blue (blue.flor): declare hosts.<name>.instance in the topology of one of them, or remove it here first, by florete-install --remove --purge or dpkg --purge\n"},
		"the same cluster, of another name": {blue(t, "", "drhorrible", "one"), blue(t, "blue", "drhorrible", "two"),
			"cluster blue (blue.flor) is here as florete, "},
		"the cluster under a new name": {blue(t, "", "drhorrible", "one"), rename(t, example(t, "drhorrible", "two"), "demo.flor", "blue.flor"), ""},
	}
}

func TestInstallWhereAnotherIs(t *testing.T) {
	needRoot(t)
	for name, c := range encounters(t) {
		m := newMachine(t)
		there, _ := unpack(t, c.there)
		m.want("installed", there)
		before := m.tree()
		comes, _ := unpack(t, c.comes)
		if c.refused == "" {
			m.want("installed", comes)
			continue
		}
		for _, args := range [][]string{{}, {"--dry-run"}, {"--rollback"}, {"--remove", "--purge"}} {
			if c.comes.name() != c.there.name() && len(args) > 0 && args[0] != "--dry-run" {
				continue // nothing is there of that name
			}
			if out, err := m.run(comes, 0, args...); err == nil || !strings.Contains(out, c.refused) || m.tree() != before {
				t.Errorf("%s: %q: %v, want %q\n%s%s", name, args, err, c.refused, out, m.tree())
			}
		}
	}
}

// TestNameIsFree checks that after the removal of a cluster was cut short, another one takes its
// name or is refused, and never returns to the former files.
func TestNameIsFree(t *testing.T) {
	needRoot(t)
	before := newMachine(t)
	for _, text := range []string{"one", "two"} {
		script, _ := unpack(t, example(t, "drhorrible", text))
		before.want("installed", script)
	}
	other, _ := unpack(t, blue(t, "", "drhorrible", "one"))
	whole := before.clone(t)
	whole.want("removed", whole.installed(""), "--remove")
	taken := 0
	for n := 1; n <= whole.calls(); n++ {
		m := before.clone(t)
		m.run(m.installed(""), n, "--remove")
		out, err := m.run(other, 0)
		if err != nil {
			if !strings.Contains(out, "cluster demo (demo.flor) is here") {
				t.Errorf("cut at step %d: %s", n, out)
			}
			continue
		}
		taken++
		if out, err := m.run(m.installed(""), 0, "--rollback"); err == nil {
			t.Errorf("cut at step %d, another cluster, then back:\n%s", n, out)
		}
	}
	if taken == 0 || taken == whole.calls() {
		t.Errorf("taken after %d of %d steps", taken, whole.calls())
	}
}
