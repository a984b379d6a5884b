package hostdir

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// ClosureErrorFile returns the path of the file in which activation records why the documents of
// the installed system are not in force.
func (l Layout) ClosureErrorFile() string { return filepath.Join(string(l), "closure-error.json") }

// ClosureError returns the reason why the documents of the installed system are not in force. It
// returns nil if they are in force, or if newer documents from the network are.
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
