package etcd_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/florete/florete/providers/store"
	"github.com/florete/florete/tests/kit"
	"github.com/florete/florete/tests/kit/etcdtest"
)

// page is the page on replacing a member.
const page = "docs/how-to/run-providers-on-three-hosts.md"

// documented returns the lines for etcdctl with which the page has an operator replace a
// member, with the values of one of a cluster's members.
func documented(t *testing.T, values map[string]string) string {
	t.Helper()
	b, err := os.ReadFile("../../../" + page)
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(string(b), "\n## Replacing a member\n")
	_, text, _ = strings.Cut(text, "```shell\n")
	text, _, _ = strings.Cut(text, "```")
	var lines []string
	for line := range strings.Lines(text) {
		if regexp.MustCompile(`^(store=|e=|\$e member (remove|add) )`).MatchString(line) {
			lines = append(lines, line)
		}
	}
	if len(lines) != 4 {
		t.Fatalf("%s: %d lines for etcdctl, want 4: %q", page, len(lines), lines)
	}
	text = strings.Join(lines, "")
	for written, value := range values {
		if !strings.Contains(text, written) {
			t.Fatalf("%s: no %s among\n%s", page, written, text)
		}
		text = strings.ReplaceAll(text, written, value)
	}
	return text
}

// etcdctl runs lines of shell, as an operator of a host with these certificates.
func etcdctl(t *testing.T, dir, script string) (string, error) {
	t.Helper()
	if _, err := exec.LookPath("etcdctl"); err != nil {
		t.Skip("NOT RUN: no etcdctl: apt-get install etcd-client")
	}
	cmd := exec.Command("sh", "-ec", script)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("%s: %w: %s", script, err, out)
	}
	return string(out), err
}

// environment is a file as systemd reads it.
func environment(t *testing.T, path string) (all []string) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		all = append(all, strings.ReplaceAll(strings.TrimSpace(line), `"`, ""))
	}
	return all
}

// TestReplacedMember checks that a member which lost its disk is refused, and can join again with
// the commands that the documentation describes. If a majority of the members is lost, the
// remaining member continues alone, and new members can join it.
func TestReplacedMember(t *testing.T) {
	c := etcdtest.StartTLS(t, 3)
	dir := c.Certificates("operator")
	s := c.Tree(t, "tree")
	commit := func(key string) error {
		_, err := s.Commit(t.Context(), store.Txn{Then: []store.Op{store.Put(key, []byte(key))}})
		return err
	}
	eventually := func(what string, is func() error) {
		t.Helper()
		err := kit.Poll(t.Context(), is)
		if err == nil {
			return
		}
		for _, m := range c.Members {
			b, _ := os.ReadFile(filepath.Join(m.Dir, "log"))
			t.Logf("%s: %s", m.Name, b[max(0, len(b)-3000):])
		}
		t.Fatalf("%s: %v", what, err)
	}
	ctl := "etcdctl --cacert ca.crt --cert client.crt --key client.key --endpoints "
	id := func(at *etcdtest.Member, name string) string {
		t.Helper()
		list, err := etcdctl(t, dir, ctl+at.Client+" member list")
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(list) {
			if f := strings.Split(line, ", "); len(f) > 2 && f[2] == name {
				return f[0]
			}
		}
		t.Fatalf("no member %s", name)
		return ""
	}
	// join has a member without data join those that at is one of.
	join := func(m, at *etcdtest.Member, remove bool) {
		t.Helper()
		was := "8e9e05c52164694d"
		if remove {
			was = id(at, m.Name)
		}
		script := documented(t, map[string]string{"/etc/florete/store": dir, "https://127.0.0.1:4620": at.Client,
			"8e9e05c52164694d": was, " forge ": " " + m.Name + " ", "https://192.0.2.1:4621": m.Peer})
		// Members refuse each until they have known each other for some seconds.
		set, change, _ := strings.Cut(script, "$e member ")
		for command := range strings.SplitSeq(change, "$e member ") {
			if strings.HasPrefix(command, "remove ") && !remove {
				continue
			}
			eventually(command, func() error {
				_, err := etcdctl(t, dir, set+"$e member "+command)
				return err
			})
		}
		m.Lose()
		m.Start(environment(t, filepath.Join(dir, "florete-store.env"))...)
		eventually(m.Name+" joins", func() error {
			return exec.Command("sh", "-c", "cd "+dir+" && "+ctl+m.Client+" endpoint health").Run()
		})
	}
	if err := commit("before"); err != nil {
		t.Fatal(err)
	}

	lost := c.Members[0]
	lost.Kill()
	lost.Lose()
	initial := "ETCD_INITIAL_CLUSTER="
	for i, m := range c.Members {
		initial += strings.Repeat(",", min(i, 1)) + m.Name + "=" + m.Peer
	}
	lost.Start(initial)
	if log := lost.Ended(); !strings.Contains(log, "has already been bootstrapped") {
		t.Fatalf("a member without its data ended with: %s", log)
	}
	if err := commit("meanwhile"); err != nil {
		t.Fatal(err)
	}
	join(lost, c.Members[1], true)

	// It counts: another may be away.
	c.Members[1].Kill()
	eventually("two of three answer", func() error { return commit("after") })
	c.Members[1].Start()

	// Two are gone, disks and all.
	eventually("all are well", func() error {
		return exec.Command("sh", "-c", "cd "+dir+" && "+ctl+lost.Client+" endpoint health --cluster").Run()
	})
	for _, m := range c.Members[1:] {
		m.Kill()
		m.Lose()
	}
	if err := commit("minority"); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("a minority: got %v, want ErrUnavailable", err)
	}
	lost.Kill()
	lost.Start("ETCD_FORCE_NEW_CLUSTER=true")
	eventually("one that is left goes on", func() error { return commit("alone") })
	lost.Kill()
	lost.Start()
	for _, m := range c.Members[1:] {
		join(m, lost, false)
	}
	lost.Kill()
	for _, key := range []string{"before", "meanwhile", "after", "alone"} {
		eventually("all of it is at the others", func() error {
			_, err := s.Get(t.Context(), key)
			return err
		})
	}
}
