package deploy

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostdir"
	"github.com/florete/florete/internal/hostreport"
	"github.com/florete/florete/internal/unixtime"
	"github.com/florete/florete/nix/operator/bundle"
	"github.com/florete/florete/nix/operator/compile"
)

func TestNames(t *testing.T) {
	manifest := document.Document{Envelope: document.Envelope{Kind: "manifest", Serial: 7, Digest: "sha256-new"}}
	pending := &hostdir.Change{ID: "mine"}
	reported := func(digest, id string) hostreport.Kept {
		r := hostreport.Report{Format: document.NewestFormat, Documents: []document.Reported{{Kind: "manifest", Serial: 7, Digest: digest}}}
		if id != "" {
			r.Pending = &hostdir.Change{ID: id}
		}
		b, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		return hostreport.Kept{Sequence: 1, Report: b}
	}
	for name, x := range map[string]struct {
		received hostreport.Kept
		pending  *hostdir.Change
		lacks    string
	}{
		"none":              {hostreport.Kept{}, pending, "never reported"},
		"other change":      {reported("sha256-new", "other"), pending, "older than the deployment"},
		"no change":         {reported("sha256-new", ""), pending, "older than the deployment"},
		"other documents":   {reported("sha256-old", "mine"), pending, "reports manifest 7, not 7"},
		"both":              {reported("sha256-new", "mine"), pending, ""},
		"nothing to undo":   {reported("sha256-new", ""), nil, ""},
		"not yet, unarmed":  {reported("sha256-old", ""), nil, "reports manifest 7"},
		"cannot be decoded": {hostreport.Kept{Sequence: 1, Report: []byte("{")}, nil, "unexpected end"},
	} {
		err := names(x.received, []document.Document{manifest}, x.pending)
		if x.lacks == "" && err != nil || x.lacks != "" && (err == nil || !strings.Contains(err.Error(), x.lacks)) {
			t.Errorf("%s: %v, want %q", name, err, x.lacks)
		}
	}
}

// TestUnpack checks that a bundle arrives with the programs that the host has, and that one which
// changed meanwhile is refused.
func TestUnpack(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	put := func(name, text string) {
		if err := os.MkdirAll(filepath.Dir(at(name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at(name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	put("packed/florete-forge/version", "7-abc\n")
	put("installed/flor", "program")
	bundle, err := exec.Command("tar", "czf", "-", "-C", at("packed"), "florete-forge").Output()
	if err != nil {
		t.Fatal(err)
	}
	run := func() (string, error) {
		programs := map[string]string{"flor": fmt.Sprintf("%x", sha256.Sum256([]byte("program")))}
		cmd := exec.Command("sh", "-c", "umask 077; "+unpack(at("change.json"), at("deploy"), at("deploy/florete-forge"), at("installed"), programs))
		cmd.Stdin = bytes.NewReader(bundle)
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	if out, err := run(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for name, want := range map[string]string{"version": "7-abc\n", "bin/flor": "program"} {
		if got, err := os.ReadFile(at("deploy/florete-forge/" + name)); err != nil || string(got) != want {
			t.Errorf("%s: %q, %v, want %q", name, got, err, want)
		}
	}
	for _, name := range []string{"bin", "bin/flor"} { // services run it as their own accounts
		fi, err := os.Stat(at("deploy/florete-forge/" + name))
		if err != nil {
			t.Fatal(err)
		}
		if fi.Mode().Perm() != 0o755 {
			t.Errorf("%s: %s, want mode 755", name, fi.Mode())
		}
	}
	put("installed/flor", "another")
	if out, err := run(); err == nil || !strings.Contains(out, at("installed/flor")+" was replaced meanwhile: run florctl deploy again") {
		t.Errorf("another program on the host: %v, %s", err, out)
	}
	put("change.json", "{}")
	put("deploy/pending", "")
	if out, err := run(); err == nil || !strings.Contains(out, "another change of this host is pending") {
		t.Errorf("a pending change: %v, %s", err, out)
	}
	if _, err := os.Stat(at("deploy/pending")); err != nil {
		t.Errorf("a pending change: %v, want nothing changed", err)
	}
}

func TestConnect(t *testing.T) {
	tools(t, "")
	h := Host{Name: "forge", Topology: compile.Host{Address: []string{"198.51.100.7:14610"}, SSHHostKey: "ssh-ed25519 AAAA"}}
	r, err := connect(t.Context(), h)
	if err != nil {
		t.Fatal(err)
	}
	options := strings.Join(r.options, " ")
	if !strings.Contains(options, "HostName=198.51.100.7 ") || !strings.Contains(options, "StrictHostKeyChecking=yes") {
		t.Errorf("options: %s", options)
	}
	known, err := os.ReadFile(filepath.Join(r.dir, "known_hosts"))
	if err != nil || string(known) != "forge ssh-ed25519 AAAA\n" {
		t.Errorf("%v: %q", err, known)
	}
	r.close()
	if _, err := os.Stat(r.dir); err == nil {
		t.Error("the directory is left over")
	}
	h.Name = "configured"
	r, err = connect(t.Context(), h)
	if err != nil {
		t.Fatal(err)
	}
	defer r.close()
	if options := strings.Join(r.options, " "); strings.Contains(options, "HostName=") {
		t.Errorf("options: %s", options)
	}
}

// tools puts stand-ins for ssh and nixos-rebuild into PATH, and returns the file that records their
// arguments. After a switch a change is pending.
func tools(t *testing.T, rebuild string) (calls string) {
	dir := t.TempDir()
	calls = filepath.Join(dir, "calls")
	for name, text := range map[string]string{
		"ssh": `case "$*" in
"-G configured") echo "hostname 192.0.2.99"; exit ;;
"-G "*) echo "hostname $2"; exit ;;
*"test -e "*"/needs/cert-node/current "*) [ ! -e DIR/new ] || echo no certificate ;;
*"cat "*undone.json) cat DIR/undone ;;
*"cat "*) [ ! -e DIR/change ] || cat DIR/change ;;
*"--confirm "*) echo "confirm ${*##* }" >> DIR/calls; rm DIR/change ;;
esac`,
		"nixos-rebuild": `echo "nixos-rebuild $*" >> DIR/calls` + "\n" + rebuild,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+strings.ReplaceAll(text, "DIR", dir)+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	return calls
}

// TestCannotReport checks that a host which could not report is refused at once, and not changed.
func TestCannotReport(t *testing.T) {
	const key = "ssh-ed25519 AAAA"
	unanswered := errors.New("flor-provider: command not found")
	for name, x := range map[string]struct {
		host    Host
		reports error
		want    string
	}{
		"joins":        {Host{Bundle: new(bundle.Bundle)}, nil, "florctl bundle --host forge --out - | ssh root@forge 'tar xzf - && florete-forge/install.sh', then florctl join token create --host forge, and flor join - on the host"},
		"NixOS, joins": {Host{}, nil, "nixos-rebuild switch --flake .#forge --target-host root@forge, then florctl join token create --host forge"},
		"issues certificates alone": {
			Host{Bundle: new(bundle.Bundle), Issues: true, Topology: compile.Host{SSHHostKey: key}}, nil,
			"florctl bundle --host forge --out - | ssh root@forge 'tar xzf - && florete-forge/install.sh', then sign its issuing certificate and publish",
		},
		"the first of several that issue certificates": {
			Host{Bundle: new(bundle.Bundle), Topology: compile.Host{SSHHostKey: key, Kinds: []string{"cert", "config"}}}, unanswered,
			"no provider answers: flor-provider: command not found: florctl bundle --host forge --out - | ssh root@forge 'tar xzf - && florete-forge/install.sh', then sign its issuing certificate",
		},
		"serves the first documents": {Host{Topology: compile.Host{SSHHostKey: key, Kinds: []string{"config"}}}, unanswered, "root@forge, then publish"},
		"before its provider":        {Host{Topology: compile.Host{SSHHostKey: key}}, unanswered, "no provider answers: flor-provider: command not found: flor doctor on the provider host"},
	} {
		t.Run(name, func(t *testing.T) {
			calls := tools(t, "")
			x.host.Name = "forge"
			if err := os.WriteFile(filepath.Join(filepath.Dir(calls), "new"), nil, 0o600); err != nil {
				t.Fatal(err)
			}
			err := Deployment{
				Flake: ".", Timeout: time.Second, Jobs: 1, Log: func(_, text string) { t.Log(text) },
				Reports: func(context.Context) (map[string]hostreport.Kept, error) { return nil, x.reports },
			}.Run(t.Context(), []Host{x.host})
			if err == nil || !strings.Contains(err.Error(), x.want) {
				t.Errorf("%v, want %q", err, x.want)
			}
			if got, err := os.ReadFile(calls); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("called %q, %v", got, err)
			}
		})
	}
}

const switched = "nixos-rebuild switch --flake .#forge --target-host root@forge\n"

// TestRebuild checks that a NixOS host is switched, and confirmed when it reports the change.
func TestRebuild(t *testing.T) {
	deadline := time.Now().Add(time.Second).UTC().Unix()
	change, err := json.Marshal(hostdir.Change{ID: "abc", Deadline: unixtime.Unix(deadline)})
	if err != nil {
		t.Fatal(err)
	}
	for name, x := range map[string]struct{ rebuild, pending, calls, failed string }{
		"armed":         {"echo '" + string(change) + "' > DIR/change", "abc", switched + "confirm abc\n", ""},
		"not armed":     {"", "", switched, ""},
		"fails":         {"echo no space >&2; exit 1", "", switched, "nixos-rebuild: exit status 1: no space"},
		"fails, armed":  {"echo '" + string(change) + "' > DIR/change; echo no space >&2; exit 1", "", switched, "no space; change abc may be partly in force, and goes back by itself by "},
		"never reports": {"echo '" + string(change) + "' | tee DIR/change > DIR/undone", "other", switched, "it went back, since it was not confirmed: no report within"},
	} {
		t.Run(name, func(t *testing.T) {
			calls := tools(t, x.rebuild)
			report := hostreport.Report{Format: document.NewestFormat, Documents: []document.Reported{}}
			if x.pending != "" {
				report.Pending = &hostdir.Change{ID: x.pending}
			}
			b, err := json.Marshal(report)
			if err != nil {
				t.Fatal(err)
			}
			err = Deployment{
				Flake: ".", Timeout: time.Second, Jobs: 1, Log: func(_, text string) { t.Log(text) },
				Reports: func(context.Context) (map[string]hostreport.Kept, error) {
					return map[string]hostreport.Kept{"forge": {Sequence: 1, Report: b}}, nil
				},
			}.Run(t.Context(), []Host{{Name: "forge"}})
			if x.failed == "" && err != nil || x.failed != "" && (err == nil || !strings.Contains(err.Error(), x.failed)) {
				t.Errorf("%v, want %q", err, x.failed)
			}
			if got, err := os.ReadFile(calls); errors.Is(err, os.ErrNotExist) || string(got) != x.calls {
				t.Errorf("called %q, want %q", got, x.calls)
			}
		})
	}
}

// TestLimited checks that a host with a disruption budget is changed only once the provider permits
// it, and that the claim is released after a success alone.
func TestLimited(t *testing.T) {
	for name, x := range map[string]struct {
		rebuild, want string
		refusal       error
	}{
		"succeeds":   {"", "claim 2m1s, claim 2m1s, release", nil},
		"fails":      {"exit 1", "claim 2m1s, claim 2m1s", nil},
		"may not":    {"", "claim 2m1s", errors.New("denied")},
		"never free": {"", "claim 2m1s, claim 2m1s, claim 2m1s", context.DeadlineExceeded},
	} {
		t.Run(name, func(t *testing.T) {
			calls := tools(t, x.rebuild)
			b, err := json.Marshal(hostreport.Report{Format: document.NewestFormat, Documents: []document.Reported{}})
			if err != nil {
				t.Fatal(err)
			}
			var did []string
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			err = Deployment{
				Flake: ".", Timeout: time.Second, Jobs: 1, Log: func(_, text string) { t.Log(text) },
				Reports: func(context.Context) (map[string]hostreport.Kept, error) {
					return map[string]hostreport.Kept{"forge": {Sequence: 1, Report: b}}, nil
				},
				Limited: map[string]bool{"forge": true},
				Claim: func(_ context.Context, host string, lasts time.Duration) (string, error) {
					if _, err := os.ReadFile(calls); err == nil {
						t.Error("the host is changed before the claim")
					}
					did = append(did, "claim "+lasts.String())
					switch {
					case x.refusal == context.DeadlineExceeded && len(did) == 3:
						cancel()
						return "forge: waits for x", nil
					case x.refusal != nil && x.refusal != context.DeadlineExceeded:
						return "", x.refusal
					case len(did) == 1 || x.refusal != nil:
						return "forge: waits for x", nil
					}
					return "", nil
				},
				Release: func(context.Context, string) error { did = append(did, "release"); return nil },
			}.Run(ctx, []Host{{Name: "forge"}})
			if failed := x.rebuild != "" || x.refusal != nil; failed != (err != nil) {
				t.Error(err)
			}
			if got := strings.Join(did, ", "); got != x.want {
				t.Errorf("%s, want %s", got, x.want)
			}
			if _, err := os.ReadFile(calls); (err == nil) != (x.refusal == nil) {
				t.Errorf("whether it was changed: %v", err)
			}
		})
	}
}
