package documents

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"

	"github.com/florete/florete/internal/atomicfile"
	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/internal/hostdir"
)

// noteClosure records why the closure is not in force: newer is nil where that is no matter
// of its format.
func noteClosure(l hostdir.Layout, newer *document.NewerFormatError) error {
	path := l.ClosureErrorFile()
	if newer == nil {
		if err := os.Remove(path); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	}
	b, err := json.Marshal(hostdir.NeedError{Kind: string(hostapi.Transient), Code: hostapi.CodeNewerFormat, Message: "closure: " + newer.Error()})
	if err != nil {
		return err
	}
	return atomicfile.File(path, append(b, '\n'), 0o644)
}
