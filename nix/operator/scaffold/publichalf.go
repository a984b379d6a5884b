package scaffold

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"slices"

	"github.com/florete/florete/internal/atomicfile"
	"github.com/florete/florete/internal/strictjson"
	"github.com/florete/florete/nix/operator/compile"
	"github.com/florete/florete/nix/operator/fleet"
	"github.com/florete/florete/providers/secret"
)

// recorded is the public half of a secret in the form that nix/resolve/publichalf.nix reads.
type recorded struct {
	Generate   string   `json:"generate"`
	Generation int      `json:"generation"`
	Public     []string `json:"public"`
}

// RecordPublics writes the public keys of generated secrets to a JSON file, so that the flake can
// contain them. If a secret has not been generated yet, its entry in the file stays unchanged, and
// the error is fleet.ErrAttention.
func RecordPublics(out io.Writer, path string, wanted map[string]compile.Secret, made []secret.Public) error {
	before, err := os.ReadFile(path)
	all := map[string]recorded{}
	if err == nil {
		err = strictjson.Decode(before, &all)
	} else if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	if err != nil {
		return fmt.Errorf("%s: %w: name the file in secrets.<name>.public, or a new one", path, err)
	}
	maps.DeleteFunc(all, func(name string, _ recorded) bool { return !wanted[name].Public })
	late := false
	for _, name := range slices.Sorted(maps.Keys(wanted)) {
		want := wanted[name]
		if !want.Public {
			continue
		}
		i := slices.IndexFunc(made, func(s secret.Public) bool { return s.Secret == name && len(s.Public) > 0 })
		if i < 0 {
			late = true
			fmt.Fprintf(out, "%s: not made yet: publish, and wait until a reader has fetched it\n", name)
			continue
		}
		is := recorded{made[i].Generate, made[i].Generation, made[i].Public}
		if is.Generation != want.Generation || is.Generate != want.Generate {
			late = true
			fmt.Fprintf(out, "%s: %s of generation %d, the flake has %s of generation %d: publish, and wait until a reader has fetched it\n", name, is.Generate, is.Generation, want.Generate, want.Generation)
		}
		if had, has := all[name]; !has || !slices.Equal(had.Public, is.Public) {
			fmt.Fprintf(out, "%s: recorded, %s of generation %d\n", name, is.Generate, is.Generation)
		}
		all[name] = is
	}
	b, err := json.MarshalIndent(all, "", "  ")
	if err != nil {
		return err
	}
	if b = append(b, '\n'); !bytes.Equal(b, before) {
		if err := atomicfile.File(path, b, 0o644); err != nil {
			return err
		}
	}
	if late {
		return fleet.ErrAttention
	}
	return nil
}
