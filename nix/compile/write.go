package compile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"florete"
)

// Write puts the documents of one host in dir, as florete.Read finds them, and
// removes those of an earlier compilation. Nobody may read dir meanwhile.
func Write(dir string, documents []florete.Document) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for _, kind := range []string{florete.DocManifest, florete.DocPolicy} {
		for _, ext := range []string{".json", ".envelope.json", ".sig"} {
			if err := os.Remove(filepath.Join(dir, kind+ext)); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
	}
	for _, d := range documents {
		if err := d.Write(dir); err != nil {
			return err
		}
	}
	return nil
}
