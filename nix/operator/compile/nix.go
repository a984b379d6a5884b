package compile

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// eval applies a Nix function to the flake's output florete. It writes nothing outside the Nix
// store, in particular no lock file.
func eval(ctx context.Context, src Source, function string, v any) error {
	if err := src.exists(); err != nil {
		return err
	}
	err := run(ctx, []string{"eval", src.ref() + "#florete"}, append([]string{"--apply", function}, src.Args...), v)
	if err != nil && strings.Contains(err.Error(), "[json.exception.") {
		if why := badText(src.dir()); why != nil {
			return why
		}
	}
	if said := errors.Unwrap(err); said != nil {
		if why := beyond(src.dir(), said.Error()); why != nil {
			return why
		}
	}
	return err
}

// run runs a Nix command and decodes its JSON output.
func run(ctx context.Context, command, args []string, v any) error {
	all := append([]string{"--extra-experimental-features", "nix-command flakes"}, command...)
	cmd := exec.CommandContext(ctx, "nix", append(append(all, "--json", "--no-write-lock-file"), args...)...)
	cmd.Env = Environ()
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if errors.Is(err, exec.ErrNotFound) {
		return fmt.Errorf("no program \"nix\" in PATH: install it, on Debian with apt install nix-bin")
	}
	what := "nix " + strings.Join(command, " ")
	if err != nil {
		return fmt.Errorf("%s: %w", what, explain(err, stderr.String()))
	}
	if err := json.Unmarshal(stdout.Bytes(), v); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

// exists returns an error unless the flake is a directory or looks like a flake reference. Without
// this check, Nix would look for a misspelled directory on the network.
func (s Source) exists() error {
	dir := s.ref()
	if fi, err := os.Stat(dir); err == nil && fi.IsDir() {
		if at := strings.IndexAny(dir, "#?"); at >= 0 {
			return fmt.Errorf("%s: Nix does not accept a directory with %q in its name: rename it, or work in a copy elsewhere", dir, dir[at])
		}
		return nil
	}
	if before, _, _ := strings.Cut(dir, "?"); strings.Contains(before, ":") || isFolder(before) {
		return nil
	}
	if _, err := os.Stat(dir); err == nil {
		return fmt.Errorf("%s: a file, want the directory with flake.nix, or a flake reference such as github:you/cluster", dir)
	}
	return fmt.Errorf("%s: no such directory: give the one with flake.nix, or a flake reference such as github:you/cluster", dir)
}

func isFolder(path string) bool {
	fi, err := os.Stat(path)
	return err == nil && fi.IsDir()
}

// Exists reports whether Source.Flake is an existing directory or looks like a flake reference. It
// does not check that there is a flake.
func (s Source) Exists() bool { return s.exists() == nil }

// ref returns the flake reference in the form that Nix accepts. A directory is returned as an
// absolute path, so that Nix recognizes it.
func (s Source) ref() string {
	flake := s.Flake
	flake = cmp.Or(flake, ".")
	if fi, err := os.Stat(flake); err == nil && fi.IsDir() {
		if abs, err := filepath.Abs(flake); err == nil {
			return abs
		}
	}
	return flake
}

// dir returns the directory of the flake. Like Nix, it looks for flake.nix in parent directories up
// to the root of the repository.
func (s Source) dir() string {
	for dir := s.ref(); ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "flake.nix")); err == nil {
			return dir
		}
		if _, err := os.Stat(filepath.Join(dir, ".git")); err == nil || !filepath.IsAbs(dir) || dir == filepath.Dir(dir) {
			return s.ref()
		}
	}
}

// explain returns the part of Nix's error message that tells the cause.
func explain(err error, stderr string) error {
	noise := []string{
		"warning: Git tree", "warning: not writing modified lock file", "•", "    '",
		"warning: the group 'nixbld'", "(use '--show-trace'",
	}
	lines := slices.DeleteFunc(strings.Split(strings.TrimSpace(stderr), "\n"), func(line string) bool {
		return slices.ContainsFunc(noise, func(n string) bool { return strings.HasPrefix(line, n) })
	})
	said := cause(lines)
	if strings.Contains(said, "program 'git' failed") {
		said = gitSaid(lines, said)
	}
	if strings.HasSuffix(said, "is not a valid URL") {
		said += ": this version of Nix takes no directory with a space, % or letters beyond ASCII in its name: rename it, or use a newer Nix"
	}
	if strings.Contains(said, "does not provide attribute") {
		said = "the flake has no such output: write florete.<name> = florete.lib.mkCluster { … };"
	}
	if strings.Contains(said, "could not find a flake.nix") {
		said = "there is no flake.nix here: start a cluster with florctl init DIR"
	}
	if untracked.MatchString(said) {
		said = "git does not know flake.nix, so neither does Nix: git add it, and all that belongs to the cluster"
	}
	if said == "" {
		return err
	}
	return errors.New(said)
}

// gitSaid returns the last error message that git printed before Nix reported git's exit code. Nix
// itself reports only the code.
func gitSaid(lines []string, said string) string {
	first := slices.IndexFunc(lines, func(l string) bool { return strings.HasPrefix(l, "fatal: ") })
	last := slices.IndexFunc(lines, func(l string) bool { return strings.HasPrefix(strings.TrimLeft(l, " "), "error:") })
	if first < 0 || last < first {
		return said
	}
	return "git: " + strings.TrimSpace(strings.TrimPrefix(strings.Join(lines[first:last], "\n"), "fatal: "))
}

// untracked matches Nix's message about a flake.nix that is not in the index of its repository.
var untracked = regexp.MustCompile(`(?s)/flake\.nix'.*(No such file|does not exist|not tracked)|not tracked by Git`)

// cause returns the last error in Nix's output. Newer versions of Nix first print a trace, and
// indent the lines that follow it.
func cause(lines []string) string {
	for i, line := range slices.Backward(lines) {
		text, found := strings.CutPrefix(strings.TrimLeft(line, " "), "error: ")
		if !found {
			continue
		}
		indent := strings.Repeat(" ", len(line)-len(text)-len("error: "))
		said := []string{text}
		for _, l := range lines[i+1:] {
			said = append(said, strings.TrimPrefix(l, indent))
		}
		return strings.Join(said, "\n")
	}
	return strings.Join(lines, "\n")
}

// quote returns a text as a Nix string.
func quote(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, `$`, `\$`).Replace(s) + `"`
}

func quoted(list []string) string {
	out := make([]string, len(list))
	for i, s := range list {
		out[i] = quote(s)
	}
	return strings.Join(out, " ")
}
