package compile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/florete/florete/internal/document"
)

// WriteAll writes the documents of each host to the directory dir/<host>. It removes the documents
// of other hosts that an earlier call has written. All other files stay.
func WriteAll(dir string, hosts map[string][]document.Document) error {
	for host, documents := range hosts {
		if err := Write(filepath.Join(dir, host), documents); err != nil {
			return err
		}
	}
	old, err := filepath.Glob(filepath.Join(dir, "*", document.EnvelopeFile(document.DocManifest)))
	if err != nil {
		return err
	}
	for _, path := range old {
		gone := filepath.Dir(path)
		if hosts[filepath.Base(gone)] != nil {
			continue
		}
		if err := Write(gone, nil); err != nil {
			return err
		}
		// The directory may contain other files.
		if err := os.Remove(gone); err != nil && !errors.Is(err, syscall.ENOTEMPTY) {
			return err
		}
	}
	return nil
}

// Write writes the documents of one host to a directory, from which document.Read can read them. It
// first removes the documents of an earlier call, so no other program may be reading the directory.
func Write(dir string, documents []document.Document) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for _, kind := range []string{document.DocManifest, document.DocPolicy} {
		for _, name := range document.FileNames(kind) {
			if err := os.Remove(filepath.Join(dir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
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
