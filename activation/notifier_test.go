package activation

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coreos/go-systemd/v22/util"
)

const unit = "outline.service"

func script(t *testing.T, text string) string {
	path := filepath.Join(t.TempDir(), "hook")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+text), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestHook(t *testing.T) {
	out := filepath.Join(t.TempDir(), "out")
	if err := NewNotifier(script(t, `echo "$1 $#" > `+out))(t.Context(), unit); err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(out); err != nil || string(b) != "outline.service 1\n" {
		t.Errorf("%q %v", b, err)
	}
	err := NotifyHook(script(t, "echo one; echo the unit is masked >&2; exit 3"))(t.Context(), unit)
	if err == nil || !strings.HasSuffix(err.Error(), "outline.service: exit status 3: the unit is masked") {
		t.Errorf("error %v", err)
	}
	if err := NotifyHook(script(t, "sleep 20 &"))(t.Context(), unit); err != nil {
		t.Errorf("a hook that starts something: %v", err)
	}
	if err := NotifyHook("/nonexistent")(t.Context(), unit); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("error %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := NotifyHook(script(t, "exit 0"))(ctx, unit); err == nil {
		t.Error("ran though it was to stop")
	}
}

func TestWithoutSystemd(t *testing.T) {
	if util.IsRunningSystemd() {
		t.Skip("NOT RUN: systemd runs here, and its units are not for tests")
	}
	if err := NewNotifier("")(t.Context(), unit); !errors.Is(err, ErrNoNotifier) {
		t.Errorf("error %v", err)
	}
	if err := NotifySystemd(t.Context(), unit); err == nil || !strings.HasPrefix(err.Error(), "outline.service: restart: ") {
		t.Errorf("error %v", err)
	}
}
