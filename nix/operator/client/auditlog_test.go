package client

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/florete/florete/nix/operator/compile"
	"github.com/florete/florete/providers/auditview"
	"github.com/florete/florete/providers/tlog"
)

// TestUnread: what is not read is named, of the kinds that have hosts.
func TestUnread(t *testing.T) {
	forge := compile.Provider{Hosts: []string{"forge"}}
	topology := compile.Topology{Providers: map[string]compile.Provider{"oidc": forge, "config": forge, "cert": forge, "tls": {}}}
	for want, providers := range map[string]Providers{"cert oidc": {New("forge", "", nil)}, "": overSSH(t, "forge")} {
		if got := strings.Join(providers.Unread(topology), " "); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// TestAuditLogs: what one provider lacks keeps nobody from the logs of the others.
func TestAuditLogs(t *testing.T) {
	bin := t.TempDir()
	script := `#!/bin/sh
case "$*" in
"root@ash "*"--follow=true") echo row of ash; while [ ! -e ` + bin + `/done ]; do sleep 0.01; done ;;
"root@elm "*"--follow=true") echo row of elm; touch ` + bin + `/done ;;
"root@elm "*) echo found at elm ;;
*) echo "` + tlog.ErrNoRow.Error() + `" >&2; exit 1 ;;
esac
`
	if err := os.WriteFile(filepath.Join(bin, "ssh"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	providers := overSSH(t, "ash", "elm")
	for _, c := range []struct {
		flag  string
		value auditview.Mode
		want  []string
		fails bool
	}{
		{"--follow", auditview.Mode{Follow: true}, []string{"row of ash", "row of elm"}, false},
		{"--proof=x", auditview.Mode{Proof: "x"}, []string{"found at elm"}, false},
		{"--verify", auditview.Mode{Verify: true}, []string{"found at elm"}, true},
	} {
		cmd := &cobra.Command{}
		new(auditview.Filter).Flags(cmd)
		auditview.Modes(cmd)
		cmd.Flags().Bool("json", false, "")
		var out bytes.Buffer
		cmd.SetOut(&out)
		cmd.SetContext(t.Context())
		if err := cmd.ParseFlags([]string{c.flag}); err != nil {
			t.Fatal(err)
		}
		err := providers.AuditLogs(cmd, &c.value, &auditview.Filter{}, false)
		if (err != nil) != c.fails {
			t.Errorf("%s: %v", c.flag, err)
		}
		got := strings.Split(strings.TrimSpace(out.String()), "\n")
		if slices.Sort(got); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", c.flag, got, c.want)
		}
	}
}

// overSSH returns the config providers of some hosts.
func overSSH(t *testing.T, hosts ...string) Providers {
	t.Helper()
	all, err := Reach(compile.Topology{Providers: map[string]compile.Provider{"config": {Hosts: hosts}}}, "ssh")
	if err != nil {
		t.Fatal(err)
	}
	return all
}
