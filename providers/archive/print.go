package archive

import (
	"fmt"
	"io"
	"time"

	"github.com/florete/florete/internal/terminal"
)

// Report returns a line for operators about an imported version: its cluster, its number of hosts
// and its serial. If changed is false, the line ends with "as before".
func Report(v Version, changed bool) string {
	note := ""
	if !changed {
		note = ", as before"
	}
	return fmt.Sprintf("cluster %s: %d hosts, serial %d%s", v.Cluster, v.Hosts, v.Serial, note)
}

// Print writes a table of versions for people, newest version first.
func Print(w io.Writer, all []Version) error {
	t := terminal.NewTable(w, "SERIAL", "COMMITTED", "IMPORTED", "REVISION", "HOSTS", "SIGNED BY", "")
	for i, v := range all {
		note := ""
		for _, older := range all[i+1:] {
			if older.Content == v.Content {
				note = fmt.Sprintf("the same documents as %d", older.Serial)
			}
		}
		t.Row(v.Serial, time.Unix(v.Serial, 0).UTC().Format(time.RFC3339),
			v.Imported.UTC().Format(time.RFC3339), fmt.Sprintf("%.12s", v.Rev), v.Hosts, v.Signer, note)
	}
	return t.Flush()
}
