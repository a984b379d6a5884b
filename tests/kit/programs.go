package kit

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// Programs puts the programs flor, florctl and flor-provider into the directory dir. If the
// environment variable FLORETE_PROGRAMS names a directory, which tests/run fills once for all
// tests, it copies them from there. Otherwise it compiles them from repo, the root of this
// repository.
func Programs(ctx context.Context, repo, dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	made := os.Getenv("FLORETE_PROGRAMS")
	if made == "" {
		cmd := exec.CommandContext(ctx, "go", "build", "-o", dir+"/", "./agent/cmd/flor", "./nix/cmd/florctl", "./providers/cmd/flor-provider")
		cmd.Dir = repo
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("go build: %w: %s", err, out)
		}
		return nil
	}
	for _, name := range []string{"flor", "florctl", "flor-provider"} {
		if out, err := exec.CommandContext(ctx, "cp", filepath.Join(made, name), dir).CombinedOutput(); err != nil {
			return fmt.Errorf("FLORETE_PROGRAMS: cp: %w: %s", err, out)
		}
	}
	return nil
}
