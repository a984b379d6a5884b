package recording

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"

	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/internal/unixtime"
)

// Summary describes a recording without its content. Hosts report the summaries of finished
// recordings to the provider of their documents, which writes them to its audit log. Whoever changes
// a recording afterwards changes its digest.
type Summary struct {
	Number  int64         `json:"number"` // order in which the recordings of a host end, from 1
	File    string        `json:"file"`   // name, in the directory of recordings
	Service spiffe.ID     `json:"service"`
	Caller  spiffe.ID     `json:"caller"`
	Account string        `json:"account"`
	Begun   unixtime.Time `json:"begun"`
	Ended   unixtime.Time `json:"ended"`
	Bytes   int64         `json:"bytes"`
	SHA256  string        `json:"sha256"` // in hexadecimal

	// Cut is true if the recording ended before the session told its end: the connection was lost,
	// the session was ended, or the host or its recorder stopped.
	Cut bool `json:"cut,omitempty"`
}

// MaxReported is the maximum number of summaries in one report of a host.
const MaxReported = 32

// Finished is the content of the file with the summaries of finished recordings.
type Finished struct {
	Last      int64     `json:"last"`      // highest number that was given
	Summaries []Summary `json:"summaries"` // by number; may lack those that a provider confirmed
}

// ReadFinished reads the summaries of finished recordings from a file. If the file does not exist,
// there are none.
func ReadFinished(path string) (f Finished, err error) {
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return f, nil
	}
	if err == nil {
		err = json.Unmarshal(b, &f)
	}
	return f, err
}

// After returns at most MaxReported summaries with the lowest numbers above a number.
func (f Finished) After(number int64) (all []Summary) {
	for _, s := range f.Summaries {
		if s.Number > number && len(all) < MaxReported {
			all = append(all, s)
		}
	}
	return all
}
