package main

import (
	"bufio"
	"bytes"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/florete/florete/tests/kit/replaytest"
)

// replayed runs florctl sessions replay, and returns its exit status and what it prints.
func replayed(t *testing.T, args ...string) (status int, stdout, stderr string) {
	t.Helper()
	var out, messages bytes.Buffer
	cmd := exec.CommandContext(t.Context(), "florctl", append([]string{"sessions", "replay"}, args...)...)
	cmd.Stdout, cmd.Stderr = &out, &messages
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), out.String(), messages.String()
}

// TestReplayCast checks what --cast writes of a whole recording and of one with a damaged piece.
func TestReplayCast(t *testing.T) {
	key, keyFile := replaytest.Key(t)
	path := replaytest.Session{Output: []string{"one", "zero\u200bwidth"}}.Write(t, key)
	cast := filepath.Join(t.TempDir(), "session.cast")
	status, out, messages := replayed(t, path, "--identity", keyFile, "--cast", cast)
	if status != 0 || messages != "" || !strings.Contains(out, "user/alice") || strings.Contains(out, `"one"`) {
		t.Fatalf("status %d: %s%s", status, out, messages)
	}
	b, err := os.ReadFile(cast)
	if err != nil || !strings.HasPrefix(string(b), `{"version":2,`) || !strings.HasSuffix(string(b), "[0.1,\"o\",\"one\"]\n[0.2,\"o\",\"zero\u200bwidth\"]\n") {
		t.Errorf("%v: %s", err, b)
	}
	if info, err := os.Stat(cast); err != nil || info.Mode() != 0o600 {
		t.Errorf("%v, %v, want mode 0600", info, err)
	}
	status, out, messages = replayed(t, path, "--identity", keyFile, "--cast", "-")
	if status != 0 || out != string(b) || !strings.Contains(messages, "user/alice") {
		t.Errorf("status %d: %s%s", status, out, messages)
	}

	replaytest.Damage(t, path)
	status, _, messages = replayed(t, path, "--identity", keyFile, "--cast", cast)
	if status != 1 || !strings.Contains(messages, "error: "+path+": piece 3 of the recording: ") {
		t.Errorf("damaged: status %d: %s", status, messages)
	}
	b, err = os.ReadFile(cast)
	if err != nil || !strings.HasSuffix(string(b), "[0.1,\"o\",\"one\"]\n") {
		t.Errorf("damaged: %v: %s", err, b)
	}
}

// TestReplayPage checks that the page is served until the command is interrupted, and that the
// command fails then if the recording is damaged.
func TestReplayPage(t *testing.T) {
	for name, damage := range map[string]func(*testing.T, string){"whole": func(*testing.T, string) {}, "damaged": replaytest.Damage} {
		t.Run(name, func(t *testing.T) {
			key, keyFile := replaytest.Key(t)
			path := replaytest.Session{Output: []string{"one", "two"}}.Write(t, key)
			damage(t, path)
			var messages bytes.Buffer
			cmd := exec.CommandContext(t.Context(), "florctl", "sessions", "replay", path, "--identity", keyFile)
			cmd.Stderr = &messages
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			url, said := "", ""
			for lines := bufio.NewScanner(out); url == "" && lines.Scan(); said += lines.Text() + "\n" {
				if strings.HasPrefix(lines.Text(), "http://127.0.0.1:") {
					url = lines.Text()
				}
			}
			resp, err := http.Get(url + "recording.cast")
			if err != nil {
				t.Fatalf("%v: %s%s", err, said, messages.String())
			}
			b, err := io.ReadAll(resp.Body)
			resp.Body.Close()
			last, status := "[0.2,\"o\",\"two\"]\n", 0
			if name == "damaged" {
				last, status = "[0.1,\"o\",\"one\"]\n", 1
			}
			if err != nil || !strings.HasSuffix(string(b), last) {
				t.Errorf("%v: %s", err, b)
			}
			if err := cmd.Process.Signal(os.Interrupt); err != nil {
				t.Fatal(err)
			}
			_ = cmd.Wait()
			piece := "piece 3 of the recording: "
			if cmd.ProcessState.ExitCode() != status || strings.Contains(said, "missing: "+piece) != (status == 1) || strings.Contains(messages.String(), path+": "+piece) != (status == 1) {
				t.Errorf("%s: %s%s", cmd.ProcessState, said, messages.String())
			}
			if _, err := http.Get(url); err == nil {
				t.Error("the page is served after the command ended")
			}
		})
	}
}

func TestReplayRefuses(t *testing.T) {
	key, keyFile := replaytest.Key(t)
	_, other := replaytest.Key(t)
	path := replaytest.Session{Output: []string{"one"}, Ends: true}.Write(t, key)
	dir := t.TempDir()
	text, open := filepath.Join(dir, "text"), filepath.Join(dir, "open")
	for name, mode := range map[string]os.FileMode{text: 0o600, open: 0o644} {
		if err := os.WriteFile(name, []byte("hello\n"), mode); err != nil {
			t.Fatal(err)
		}
	}
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"no key":       {[]string{path}, `required flag(s) "identity" not set`},
		"no file":      {[]string{"--identity", keyFile}, "accepts 1 arg(s)"},
		"wrong key":    {[]string{path, "--identity", other}, "want a key of record.recipients of the service"},
		"readable key": {[]string{path, "--identity", open}, "chmod 0600"},
		"text as key":  {[]string{path, "--identity", text}, text + ": error at line 1: unknown identity type, want what age-keygen makes"},
		"missing key":  {[]string{path, "--identity", filepath.Join(dir, "key")}, "no such file"},
		"directory":    {[]string{dir, "--identity", keyFile}, dir + ": is no regular file, want a recording"},
		"text":         {[]string{text, "--identity", keyFile}, text + ": no recording"},
		"cast to dir":  {[]string{path, "--identity", keyFile, "--cast", dir}, dir + ": is a directory, want a file"},
	} {
		if status, out, messages := replayed(t, c.args...); status != 1 || out != "" || !strings.HasPrefix(messages, "error: ") || !strings.Contains(messages, c.want) {
			t.Errorf("%s: status %d, %s%s, want %q", name, status, out, messages, c.want)
		}
	}
}
