package program

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// fake puts a program into the PATH that prints a version.
func fake(t *testing.T, dir, name, version string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte("#!/bin/sh\necho '"+name+" version: "+version+"' >&2\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestFind(t *testing.T) {
	system = t.TempDir()
	for name, c := range map[string]struct {
		installed, fetched string // versions; empty where there is none
		found, refused     string
	}{
		"installed":              {"nginx/1.26.3", "", "installed", ""},
		"too old":                {"nginx/1.22.1", "", "", "version 1.22.1, want 1.23.2 or newer in FLORETE_NGINX"},
		"too old, other fetched": {"nginx/1.22.1", "nginx/1.26.3", "fetched", ""},
		"newer, other fetched":   {"nginx/1.28.0", "nginx/1.26.3", "fetched", ""},
		"no version":             {"nginx", "", "", "no version in what it prints"},
		"none":                   {"", "", "", "no nginx, neither in PATH nor in FLORETE_NGINX"},
	} {
		t.Run(name, func(t *testing.T) {
			installed, fetched := t.TempDir(), t.TempDir()
			t.Setenv("PATH", installed)
			t.Setenv("FLORETE_NGINX", "")
			want := ""
			if c.installed != "" {
				want = fake(t, installed, "nginx", c.installed)
			}
			if c.fetched != "" {
				want = fake(t, fetched, "nginx", c.fetched)
				t.Setenv("FLORETE_NGINX", want)
				t.Setenv("FLORETE_NGINX_ROOT", fetched)
			}
			p, err := Find("nginx")
			if c.refused != "" {
				if err == nil || !strings.Contains(err.Error(), c.refused) {
					t.Errorf("%v, want an error with %q", err, c.refused)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if p.Command[0] != want || (c.found == "fetched") != (p.Root != "") {
				t.Errorf("%+v, want %s (%s)", p, want, c.found)
			}
		})
	}
}
