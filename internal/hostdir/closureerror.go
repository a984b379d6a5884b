package hostdir

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// ClosureErrorFile is where activation keeps why it does not put the closure in force.
func (l Layout) ClosureErrorFile() string { return filepath.Join(string(l), "closure-error.json") }

// ClosureError is why the documents of the closure are not in force, while others are; nil
// where they are, or the network brought newer ones.
func (l Layout) ClosureError() (*NeedError, error) {
	b, err := os.ReadFile(l.ClosureErrorFile())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	e := new(NeedError)
	return e, json.Unmarshal(b, e)
}
