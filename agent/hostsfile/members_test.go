package hostsfile

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/florete/florete/internal/hostdir"
	"github.com/florete/florete/tests/kit"
	"github.com/florete/florete/tests/kit/agenttest"
)

// TestMembers checks that several instances can share hosts(5). Each instance has its own block,
// which keeps its place. No instance changes the block of another.
func TestMembers(t *testing.T) {
	path := file(t, others)
	one, blue := Config{Hosts: path}, Config{Hosts: path, Instance: "blue"}
	wiki, auth := block("", reach("service/wiki")), block("", reach("service/auth"))
	bluewiki, bluedb := block("blue", reach("service/wiki")), block("blue", reach("service/db"))
	for i, c := range []struct {
		Config
		block, want string
		changed     bool
	}{
		{one, wiki, others + "\n" + wiki, true},
		{blue, bluewiki, others + "\n" + wiki + bluewiki, true},
		{one, wiki, others + "\n" + wiki + bluewiki, false},
		{blue, bluewiki, others + "\n" + wiki + bluewiki, false},
		{one, auth, others + "\n" + auth + bluewiki, true},
		{blue, bluedb, others + "\n" + auth + bluedb, true},
		{one, "", others + "\n" + bluedb, true},
		{one, wiki, others + "\n" + bluedb + wiki, true},
		{blue, "", others + "\n" + wiki, true},
	} {
		changed, err := c.rewrite(c.block)
		if got := read(t, path); got != c.want || changed != c.changed || err != nil {
			t.Fatalf("%d: %v, %v, file\n%s", i, changed, err, got)
		}
	}
}

// TestMembersMangled checks that a block without its last line does not include lines of the next
// block.
func TestMembersMangled(t *testing.T) {
	wiki, blue := block("", reach("service/wiki")), block("blue", reach("service/db"))
	for _, text := range []string{
		strings.TrimSuffix(wiki, ends+"\n") + blue,
		ends + "\n" + blue + wiki,
	} {
		c := Config{Hosts: file(t, text)}
		if _, err := c.rewrite(wiki); err != nil {
			t.Fatal(err)
		}
		if got := read(t, c.Hosts); got != wiki+blue {
			t.Errorf("of\n%sgot\n%s", text, got)
		}
	}
}

// TestMembersRun checks that two instances that write the same file do not overwrite each other for
// ever.
func TestMembersRun(t *testing.T) {
	c := agenttest.NewCluster(t, "127.0.0.1:1")
	path := file(t, others)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 2)
	for _, m := range []hostdir.Instance{"", "blue"} {
		go func() {
			ended <- Run(ctx, Config{Instance: m, Layout: c.Laptop.Layout, Hosts: path, Log: slog.New(slog.DiscardHandler)})
		}()
	}
	written, same := time.Time{}, 0
	kit.Succeeds(t, "nothing more to be written", func() error {
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		both := strings.Count(read(t, path), "outline.demo.flor.rete") == 2
		if same++; !both || info.ModTime() != written {
			written, same = info.ModTime(), 0
		}
		if same < 30 {
			return fmt.Errorf("still written to:\n%s", read(t, path))
		}
		return nil
	})
	cancel()
	for range 2 {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}

// TestMembersAtOnce checks that readers always see whole blocks while several instances write. A
// block may be an older version.
func TestMembersAtOnce(t *testing.T) {
	path := file(t, others+"\n")
	ended := make(chan error, 2)
	for _, m := range []hostdir.Instance{"", "blue"} {
		one, two := block(m, reach("service/wiki")), block(m, reach("service/a", "service/b", "service/c"))
		go func() {
			var err error
			for i := 0; i < 200 && err == nil; i++ {
				_, err = Config{Hosts: path, Instance: m}.rewrite([]string{one, two}[i%2])
			}
			ended <- err
		}()
	}
	for left := 2; left > 0; {
		select {
		case err := <-ended:
			if left--; err != nil {
				t.Error(err)
			}
		default:
		}
		rest := read(t, path)
		for _, m := range []hostdir.Instance{"", "blue"} {
			before, after := cut(rest, m)
			rest = before + after
		}
		if rest != others+"\n" {
			t.Fatalf("others' lines became\n%s", rest)
		}
	}
}
