// Package program finds the third-party programs that tests run, such as nginx and etcd, in
// suitable versions. If another version is installed, tests/run fetches a suitable one and names it
// in environment variables. Programs in Go are tools of modules in tests, and are compiled.
package program

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"golang.org/x/mod/semver"
)

// A Program is a third-party program.
type Program struct {
	Command []string // the command line that starts it
	Root    string   // directory that contains its files; empty if the program is installed
}

// requirement is the oldest suitable version of a program, and the flag that prints its version.
type requirement struct{ oldest, flag string }

// requirements lists only programs of which some distribution still has a version too old for the
// tests.
var requirements = map[string]requirement{
	"nginx":        {"1.23.2", "-v"}, // variables of the PROXY protocol's TLVs
	"etcd":         {"3.4.0", "--version"},
	"redis-server": {"6.0.0", "--version"}, // access lists
}

// Find looks for a third-party program that a test needs. It looks in PATH and in a directory of
// system programs. If the environment variable FLORETE_<NAME> is set, it contains the command
// instead, and FLORETE_<NAME>_ROOT the directory of its files. NAME is the program's name in
// capitals, up to the first hyphen. If there is no such program, or if its version is too old, Find
// returns an error.
func Find(name string) (Program, error) {
	head, _, _ := strings.Cut(name, "-")
	variable := "FLORETE_" + strings.ToUpper(head)
	found := Program{strings.Fields(os.Getenv(variable)), os.Getenv(variable + "_ROOT")}
	if len(found.Command) == 0 {
		path, err := exec.LookPath(name)
		if err != nil {
			path, err = exec.LookPath(filepath.Join(system, name))
		}
		if err != nil {
			return Program{}, fmt.Errorf("no %s, neither in PATH nor in %s: tests/run fetches it", name, variable)
		}
		found = Program{Command: []string{path}}
	}
	r, ok := requirements[name]
	if !ok {
		return found, nil
	}
	version, err := printed(found.Command, r.flag)
	if err != nil {
		return Program{}, err
	}
	if semver.Compare("v"+version, "v"+r.oldest) < 0 {
		return Program{}, fmt.Errorf("%s is version %s, want %s or newer in %s: tests/run fetches it", found.Command[0], version, r.oldest, variable)
	}
	return found, nil
}

// system is a directory of programs that is not in every user's PATH.
var system = "/usr/sbin"

var numbers = regexp.MustCompile(`\d+\.\d+(\.\d+)?`)

// printed returns the version that a program prints.
func printed(command []string, flag string) (string, error) {
	words := append(append([]string{}, command...), flag)
	out, err := exec.Command(words[0], words[1:]...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%s: %w\n%s", strings.Join(words, " "), err, out)
	}
	version := numbers.Find(out)
	if version == nil {
		return "", fmt.Errorf("%s: no version in what it prints, %q", strings.Join(words, " "), out)
	}
	return string(version), nil
}

// Require returns a program, or skips the test if Find returns an error.
func Require(t testing.TB, name string) Program {
	t.Helper()
	found, err := Find(name)
	if err != nil {
		t.Skip("NOT RUN:", err)
	}
	return found
}
