package archive

import (
	"fmt"
	"io"
	"text/tabwriter"
	"time"
)

// Report is what came of an import.
func Report(v Version, changed bool) string {
	note := ""
	if !changed {
		note = ", as before"
	}
	return fmt.Sprintf("cluster %s: %d hosts, serial %d%s", v.Cluster, v.Hosts, v.Serial, note)
}

// Print writes a table of versions, newest first, for people.
func Print(w io.Writer, all []Version) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "SERIAL\tCOMMITTED\tIMPORTED\tREVISION\tHOSTS\tSIGNED BY\t")
	for i, v := range all {
		note := ""
		for _, older := range all[i+1:] {
			if older.Content == v.Content {
				note = fmt.Sprintf("the same documents as %d", older.Serial)
			}
		}
		fmt.Fprintf(t, "%d\t%s\t%s\t%.12s\t%d\t%s\t%s\n", v.Serial, time.Unix(v.Serial, 0).UTC().Format(time.RFC3339),
			v.Imported.UTC().Format(time.RFC3339), v.Rev, v.Hosts, v.Signer, note)
	}
	return t.Flush()
}
