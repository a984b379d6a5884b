package hostdir

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Recordings returns the directory with the recordings of SSH sessions on this host.
// FinishedRecordings returns the path of the file there with the summaries of finished recordings,
// a recording.Finished.
func (l Layout) Recordings() string         { return filepath.Join(string(l), "recordings") }
func (l Layout) FinishedRecordings() string { return filepath.Join(l.Recordings(), "finished.json") }

// ConfirmedRecordingsFile returns the path of the file in which activation keeps the number of the
// last recording whose summary a provider has confirmed.
func (l Layout) ConfirmedRecordingsFile() string {
	return filepath.Join(string(l), "recordings-confirmed")
}

// ConfirmedRecordings returns the number in ConfirmedRecordingsFile. It returns 0 if there is none.
// Then summaries are reported once more, which does no harm.
func (l Layout) ConfirmedRecordings() int64 {
	b, _ := os.ReadFile(l.ConfirmedRecordingsFile())
	n, _ := strconv.ParseInt(strings.TrimSpace(string(b)), 10, 64)
	return n
}
