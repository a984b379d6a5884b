package kit

import (
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
)

// programs maps the names of the programs to the directories of their packages.
var programs = map[string]string{"flor": "./agent/cmd/flor", "florctl": "./nix/cmd/florctl", "flor-provider": "./providers/cmd/flor-provider"}

// Programs puts programs of the product, such as flor and florctl, into a directory. If no names
// are given, it does so for all of them. If the environment variable FLORETE_PROGRAMS is set, it
// copies the programs from the directory in that variable, which tests/run fills once for all
// tests. Otherwise it compiles them from repo, the root of this repository.
func Programs(ctx context.Context, repo, dir string, names ...string) error {
	if len(names) == 0 {
		names = slices.Sorted(maps.Keys(programs))
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	made := os.Getenv("FLORETE_PROGRAMS")
	if made == "" {
		cmd := exec.CommandContext(ctx, "go", "build", "-o", dir+"/")
		for _, name := range names {
			cmd.Args = append(cmd.Args, programs[name])
		}
		cmd.Dir, cmd.Env = repo, append(os.Environ(), "CGO_ENABLED=0")
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("go build: %w: %s", err, out)
		}
		return nil
	}
	for _, name := range names {
		if out, err := exec.CommandContext(ctx, "cp", filepath.Join(made, name), dir).CombinedOutput(); err != nil {
			return fmt.Errorf("FLORETE_PROGRAMS: cp: %w: %s", err, out)
		}
	}
	return nil
}
