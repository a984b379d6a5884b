// Package commands tests the commands of a program against the documentation: that each has help, that
// the page made of it is up to date, and that pages call it with commands and flags that exist.
package commands

import (
	"bytes"
	"errors"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/florete/florete/tests/docs/pages"
)

var update = flag.Bool("update", false, "rewrite the page of the commands in docs/reference, and the manual pages of bundles")

// Test checks the documentation of a program: its help texts, its reference page, its manual pages,
// and each command line with the program on other pages. The argument intro is the text below the
// title of the reference page.
func Test(t *testing.T, root func() *cobra.Command, intro string) {
	program := root().Name()
	t.Run("help", func(t *testing.T) {
		for _, lacks := range lackingHelp(root()) {
			t.Error(lacks)
		}
	})
	t.Run("page", func(t *testing.T) { testPage(t, root(), intro) })
	t.Run("man", func(t *testing.T) { testMan(t, root()) })
	t.Run("pages", func(t *testing.T) {
		n := 0
		for _, p := range pages.All(t) {
			for _, called := range p.Invocations(program) {
				n++
				if err := Check(root(), called); err != "" {
					t.Errorf("%s: %s %s: %s", called.Place, program, strings.Join(called.Words, " "), err)
				}
			}
		}
		if n < 10 {
			t.Errorf("%d calls of %s found on pages, want more: is their form still known?", n, program)
		}
	})
}

func testPage(t *testing.T, root *cobra.Command, intro string) {
	file := filepath.Join(pages.Root(t), "docs", "reference", root.Name()+".md")
	want := page(root, intro)
	if *update {
		if err := os.WriteFile(file, want, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if got, err := os.ReadFile(file); err != nil || !bytes.Equal(got, want) {
		t.Errorf("%s is not what the help of the commands gives (%v): go test -run %s -update in this directory", file, err, t.Name())
	}
}

// testMan writes the manual pages, compares them with the pages that bundles contain, and renders
// them if groff is installed.
func testMan(t *testing.T, root *cobra.Command) {
	dir := t.TempDir()
	name := root.Name()
	want := 0
	var count func(*cobra.Command)
	count = func(c *cobra.Command) {
		if !c.Hidden {
			want++
		}
		for _, sub := range c.Commands() {
			count(sub)
		}
	}
	count(root)
	root.SetArgs([]string{"man", dir})
	root.SetOut(os.Stderr)
	if err := root.Execute(); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(dir, name+"*.1"))
	if err != nil || len(files) != want {
		t.Errorf("%d manual pages, want %d: %v", len(files), want, err)
	}
	if bundled := filepath.Join(pages.Root(t), "nix/operator/bundle/man", name); exists(bundled) {
		testBundled(t, dir, bundled)
	}
	groff, err := exec.LookPath("groff")
	if err != nil {
		return
	}
	out, err := exec.Command(groff, append([]string{"-K", "utf8", "-man", "-Tutf8", "-ww", "-P-cbou"}, files...)...).CombinedOutput()
	if err != nil || bytes.Contains(out, []byte("warning:")) || !bytes.Contains(out, []byte("SYNOPSIS")) {
		warnings := regexp.MustCompile(`(?m)^.*warning:.*`).FindAll(out, 9)
		t.Errorf("groff: %v: %s\n%.500s", err, warnings, out)
	}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// testBundled compares the manual pages in dir with the checked-in pages of bundles, which are built
// for all architectures and so cannot run the program.
func testBundled(t *testing.T, dir, bundled string) {
	if *update {
		if err := errors.Join(os.RemoveAll(bundled), os.CopyFS(bundled, os.DirFS(dir))); err != nil {
			t.Fatal(err)
		}
		return
	}
	if out, err := exec.Command("diff", "-r", bundled, dir).CombinedOutput(); err != nil {
		t.Errorf("%s: the manual pages are not what the help of the commands gives (%v): go test -run TestCommands -update in this directory\n%.500s", bundled, err, out)
	}
}

// Check returns a description of the first mistake in a command line from the documentation, such
// as an unknown flag. If there is no mistake, it returns "".
func Check(root *cobra.Command, called pages.Invocation) string {
	words := called.Words
	if slices.ContainsFunc(words, func(w string) bool { return w == "…" || w == "..." || strings.HasPrefix(w, "[") }) {
		called.Whole = false
	}
	if len(words) > 0 && slices.Contains([]string{"completion", "help", "COMMAND"}, words[0]) {
		return ""
	}
	if !called.Whole && len(words) > 0 && strings.HasPrefix(words[0], "-") { // flags of some command
		return ""
	}
	c, rest, err := root.Find(words)
	if err != nil {
		return err.Error()
	}
	if !c.Runnable() {
		for _, w := range rest {
			if !strings.HasPrefix(w, "-") && !strings.HasPrefix(w, "…") && w != "..." {
				return "no command " + w
			}
		}
		return ""
	}
	if !called.Whole {
		for _, w := range rest {
			name, found := strings.CutPrefix(strings.TrimLeft(w, "["), "--")
			if name, _, _ = strings.Cut(name, "="); !found || name == "" || name == "help" {
				continue
			}
			name = strings.TrimRight(name, "].,…")
			if c.Flags().Lookup(name) == nil && c.InheritedFlags().Lookup(name) == nil {
				return "no flag --" + name
			}
		}
		return ""
	}
	if err := c.ParseFlags(rest); err != nil {
		return err.Error()
	}
	if help, err := c.Flags().GetBool("help"); err == nil && help {
		return ""
	}
	for _, err := range []error{c.ValidateArgs(c.Flags().Args()), c.ValidateRequiredFlags(), c.ValidateFlagGroups()} {
		if err != nil {
			return err.Error()
		}
	}
	return ""
}
