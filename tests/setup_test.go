package tests

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestRaceExceptions checks that each flag that excludes packages from the race detector matches
// packages that are compiled. Go does not report patterns without matches, and bcrypt takes twelve
// times as long with the detector.
func TestRaceExceptions(t *testing.T) {
	out, err := exec.Command("bash", "-c", `. ./setup && printf '%s\n' "${race[@]}"`, "setup").Output()
	if err != nil {
		t.Fatal(err)
	}
	exceptions := 0
	for flag := range strings.Lines(string(out)) {
		flag = strings.TrimSpace(flag)
		pattern, found := strings.CutPrefix(flag, "-gcflags=")
		pattern, ok := strings.CutSuffix(pattern, "=-race=false")
		if !found || !ok {
			if flag != "-race" {
				t.Errorf("flag %s, want -race or -gcflags=PATTERN=-race=false", flag)
			}
			continue
		}
		exceptions++
		listed, err := exec.Command("go", "list", pattern).Output()
		if err != nil || len(listed) == 0 {
			t.Errorf("pattern %s matches no package (%v)", pattern, err)
		}
	}
	if exceptions == 0 {
		t.Error("no package is left out of the race detector")
	}
}

// TestWithoutRace checks that tests/run names each test that is not compiled with the race
// detector. Otherwise nobody would run it.
func TestWithoutRace(t *testing.T) {
	run, err := os.ReadFile("run")
	if err != nil {
		t.Fatal(err)
	}
	var named []string
	for _, found := range regexp.MustCompile(`tested .* "\$pure" .* -run '([^']*)'`).FindAllSubmatch(run, -1) {
		named = append(named, strings.Split(string(found[1]), "|")...)
	}
	tests := regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	some := false
	err = filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := os.ReadFile(path)
		if err != nil || !bytes.HasPrefix(file, []byte("//go:build !race\n")) {
			return err
		}
		for _, test := range tests.FindAllSubmatch(file, -1) {
			some = true
			if !slices.Contains(named, string(test[1])) {
				t.Errorf("%s: tests/run does not run %s, want it in a step without the race detector", path, test[1])
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if !some {
		t.Error("no test is without the race detector: this one sees nothing")
	}
}

// TestCompiledOnce checks that each command of tests/run that compiles has the flags of our
// programs or those of the race detector. Other flags would compile nearly everything again.
func TestCompiledOnce(t *testing.T) {
	compiles := regexp.MustCompile(`\bgo (build|test) |\btested [^(]`)
	seen := 0
	for _, path := range []string{"run", "demo", "hosts/run"} {
		script, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(script)) {
			if strings.HasPrefix(line, "#") || !compiles.MatchString(line) {
				continue
			}
			seen++
			if !strings.Contains(line, `"$pure"`) && !strings.Contains(line, `"${race[@]}"`) {
				t.Errorf(`tests/%s: %s: neither "$pure" nor "${race[@]}" of tests/setup`, path, strings.TrimSpace(line))
			}
		}
	}
	if seen < 9 {
		t.Errorf("%d commands that compile in tests/run and what it calls, want 9 or more", seen)
	}
}

// TestInstall checks what is installed: commands that are missing, also where a folder has the name
// of the command as nix/ has here, and absolute paths that are missing.
func TestInstall(t *testing.T) {
	dir := t.TempDir()
	bin := filepath.Join(dir, "bin")
	err := errors.Join(os.MkdirAll(filepath.Join(dir, "no-command"), 0o755), os.Mkdir(bin, 0o755),
		os.WriteFile(filepath.Join(bin, "apt-get"), []byte("#!/bin/sh\necho \"$@\" >>asked\n"), 0o755),
		os.WriteFile(filepath.Join(bin, "sudo"), []byte("#!/bin/sh\n\"$@\"\n"), 0o755))
	if err != nil {
		t.Fatal(err)
	}
	setup, err := filepath.Abs("setup")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("bash", "-c", `. "$1" && PATH=$2:$PATH install sh=a no-command=b "$3"=c "$3/no-file"=d`, setup, setup, bin, dir)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	asked, err := os.ReadFile(filepath.Join(dir, "asked"))
	if want := "install -qq -y --no-install-recommends b d\n"; err != nil || !strings.HasSuffix(string(asked), want) {
		t.Errorf("apt-get was asked for %q (%v), want %q at the end", asked, err, want)
	}
}
