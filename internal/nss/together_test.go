package nss

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestTogether checks that accounts are looked up at the same time, because directories can be
// slow. The getent of this test answers only when the expected number of processes wait for it.
func TestTogether(t *testing.T) {
	dir := t.TempDir()
	script := fmt.Sprintf(`#!/bin/sh
mkdir %[1]s/"$3"
until [ "$(ls %[1]s | wc -l)" -ge %[2]d ]; do sleep 0.1; done
echo "$3:x:61001:61001::/:/bin/sh"
`, filepath.Join(dir, "waiting"), atOnce)
	getent := filepath.Join(dir, "getent")
	if err := os.Mkdir(filepath.Join(dir, "waiting"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(getent, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	defer func(p []string, d time.Duration) { programs, timeout = p, d }(programs, timeout)
	programs, timeout = []string{getent}, 5*time.Minute
	var names []string
	for i := range atOnce {
		names = append(names, fmt.Sprintf("florete-of-ldap-%d", i), "root")
	}
	found := LookupAll(names)
	for _, name := range names {
		if f := found[name]; f.Err != nil || f.User.Username != name {
			t.Errorf("%s: %+v", name, f)
		}
	}
	if len(found) != atOnce+1 {
		t.Errorf("%d accounts, want %d", len(found), atOnce+1)
	}
}
