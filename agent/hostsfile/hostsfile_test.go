package hostsfile

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/tests/kit"
	"github.com/florete/florete/tests/kit/agenttest"
)

const ends = "# florete: end"

const others = "127.0.0.1\tlocalhost\n\n# florete is not mentioned here\n10.0.0.1 printer.rete"

// file creates a hosts(5) file with a text.
func file(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "hosts")
	if err := os.WriteFile(path, []byte(text), 0o640); err != nil {
		t.Fatal(err)
	}
	return path
}

func read(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func reach(names ...string) (m document.Manifest) {
	m.Cluster = "demo"
	for i, name := range names {
		listen := netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 1, 1, byte(i)}), 80)
		m.Forwarder.Reach = append(m.Forwarder.Reach, document.Reachable{ID: kit.ID(name), Listen: listen})
	}
	return m
}

func TestBlock(t *testing.T) {
	if got := block("", document.Manifest{}); got != "" {
		t.Errorf("a host that reaches nothing has %q", got)
	}
	want := "# florete: what cluster demo offers this host; kept by florete-hosts-file.service\n" +
		"127.1.1.0 wiki.demo.flor.rete\n127.1.1.1 host.ursula.demo.flor.rete\n# florete: end\n"
	if got := block("", reach("service/wiki", "service/ursula/host")); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	m := reach("service/wiki")
	m.Forwarder.Reach[0].Aliases = []string{"*.apps.demo.flor.rete", "docs.demo.flor.rete"}
	if got := block("", m); !strings.Contains(got, "127.1.1.0 docs.demo.flor.rete\n127.1.1.0 wiki.demo.flor.rete\n") || strings.Contains(got, "*") {
		t.Errorf("aliases are\n%s", got)
	}
	want = strings.ReplaceAll(want, "florete", "florete_blue")
	if got := block("blue", reach("service/wiki", "service/ursula/host")); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestRewrite(t *testing.T) {
	one, two := block("", reach("service/wiki", "service/auth")), block("", reach("service/notes"))
	path := file(t, others)
	// A writer that was killed has left this file.
	if err := os.WriteFile(filepath.Join(filepath.Dir(path), ".hosts.florete"), []byte("half of it"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		block, want string
		changed     bool
	}{
		{one, others + "\n" + one, true},
		{one, others + "\n" + one, false},
		{two, others + "\n" + two, true},
		{"", others + "\n", true},
		{"", others + "\n", false},
	} {
		changed, err := Config{Hosts: path}.rewrite(c.block)
		if got := read(t, path); got != c.want || changed != c.changed || err != nil {
			t.Fatalf("block %q: %v, %v, file\n%s", c.block, changed, err, got)
		}
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("mode %s, %v", info.Mode(), err)
	}
	if entries, _ := os.ReadDir(filepath.Dir(path)); len(entries) != 1 {
		t.Errorf("left behind: %v", entries)
	}
}

// TestRewriteMangled checks that lines that people wrote are kept, even if people have also changed
// the block.
func TestRewriteMangled(t *testing.T) {
	one := block("", reach("service/wiki", "service/auth"))
	for name, text := range map[string]string{
		"no end":              strings.TrimSuffix(one, ends+"\n") + others + "\n",
		"twice":               one + others + "\n" + one,
		"line inside":         strings.Replace(one, "\n127.1.1.1", "\n"+others+"\n127.1.1.1", 1),
		"only the end":        others + "\n" + ends + "\n",
		"other ends of lines": others + "\n" + strings.ReplaceAll(one, "\n", "\r\n"),
		"in the middle":       strings.Replace(others, "\n\n", "\n"+one+"\n", 1) + "\n",
	} {
		c := Config{Hosts: file(t, text)}
		if _, err := c.rewrite(one); err != nil {
			t.Fatal(err)
		}
		got := read(t, c.Hosts)
		if strings.Count(got, "wiki.demo.flor.rete") != 1 || strings.Count(got, ends) != 1 {
			t.Errorf("%s: got\n%s", name, got)
		}
		for line := range strings.Lines(others) {
			if !strings.Contains(got, strings.TrimSpace(line)) {
				t.Errorf("%s: lost %q", name, line)
			}
		}
	}
}

func TestRewriteRefuses(t *testing.T) {
	path := file(t, others)
	link := Config{Hosts: filepath.Join(t.TempDir(), "hosts")}
	if err := os.Symlink(path, link.Hosts); err != nil {
		t.Fatal(err)
	}
	if _, err := link.rewrite("x"); err == nil || !strings.Contains(err.Error(), "want a regular file: what makes it has to list the names") {
		t.Errorf("a symlink: %v", err)
	}
	if err := Remove(link); err != nil || read(t, path) != others {
		t.Errorf("nothing to take out of it: %v", err)
	}
	missing := Config{Hosts: filepath.Join(t.TempDir(), "hosts")}
	if changed, err := missing.rewrite(""); changed || err != nil {
		t.Errorf("nothing to write: %v, %v", changed, err)
	}
	if _, err := os.Stat(missing.Hosts); err == nil {
		t.Error("an empty file was made")
	}
}

// TestRun checks that the names follow the documents, and that the block is restored after another
// program has changed the file.
func TestRun(t *testing.T) {
	c := agenttest.NewCluster(t, "127.0.0.1:1")
	path := file(t, others)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- Run(ctx, Config{Layout: c.Laptop.Layout, Hosts: path, Log: slog.New(slog.DiscardHandler)})
	}()
	wait := func(what string, holds func(text string) bool) {
		t.Helper()
		kit.Succeeds(t, what, func() error {
			if text := read(t, path); !holds(text) {
				return fmt.Errorf("still\n%s", text)
			}
			return nil
		})
	}
	has := func(text string) bool { return strings.Contains(text, "outline.demo.flor.rete") }
	wait("the first documents", has)

	all := c.Reach.Reach
	c.Reach.Reach = nil
	c.AcceptLaptop()
	wait("a service that went", func(text string) bool { return text == others+"\n" })

	c.Reach.Reach = all
	c.AcceptLaptop()
	wait("a service that came", has)

	if err := os.WriteFile(path+".new", []byte("127.0.0.1 localhost\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
	wait("a file that something else rewrote", has)
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if !has(read(t, path)) {
		t.Error("names went when it was stopped")
	}
	if err := Remove(Config{Hosts: path}); err != nil || read(t, path) != "127.0.0.1 localhost\n" {
		t.Errorf("removed: %v, %q", err, read(t, path))
	}
	none := Config{Hosts: filepath.Join(t.TempDir(), "hosts")}
	if _, err := none.rewrite("# florete: what cluster demo reaches\n" + ends + "\n"); err != nil {
		t.Fatal(err)
	}
	if err := Remove(none); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(none.Hosts); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("where there was no file one is left: %v", err)
	}
}

// TestRunFails checks that an error is reported only once, and that Run waits before it tries
// again.
func TestRunFails(t *testing.T) {
	c := agenttest.NewCluster(t, "127.0.0.1:1")
	path := filepath.Join(t.TempDir(), "hosts")
	if err := os.Symlink(file(t, others), path); err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if err := Run(ctx, Config{Layout: c.Laptop.Layout, Hosts: path, Log: slog.New(slog.NewTextHandler(&log, nil))}); err != nil {
		t.Error(err)
	}
	if n := strings.Count(log.String(), "names are not kept"); n != 1 || !strings.Contains(log.String(), "want a regular file") {
		t.Errorf("said %d times:\n%s", n, &log)
	}
}
