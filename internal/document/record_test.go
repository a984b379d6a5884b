package document_test

import (
	"strings"
	"testing"

	"github.com/florete/florete/internal/document"
)

// TestRecord opens a manifest with a service whose sessions are recorded, and refuses each change
// that would make the recording useless.
func TestRecord(t *testing.T) {
	const (
		first  = "age1gl2asgzfpgyldt5rpg5j4fdl6j43euvgm2lygtzs6t6vk87f79pstn46u8"
		second = "age1ql3z7hjy54pw3hyww5ayyfg7zqgvc7w3j2elw8zmrj2kg5sfn9aqmcac8p"
	)
	whole := forwarder(
		`{"id":"spiffe://demo.flor/service/shell","remote":"ssh","upstream":"127.0.0.1:22","allow":[],"record":{"recipients":["`+first+`","`+second+`"],"days":90}}`,
		`{"id":"spiffe://demo.flor/service/shell","remote":"ssh","callers":[],"listen":"127.0.0.1:22","endpoints":[],"recorded":true}`)
	d, err := document.Open(envelope(t, whole, nil), []byte(whole), "")
	if err != nil {
		t.Fatal(err)
	}
	f := d.Manifest().Forwarder
	if r := f.Publish[0].Record; r == nil || len(r.Recipients) != 2 || r.Days != 90 || !f.Reach[0].Recorded {
		t.Errorf("record %+v, recorded %v", r, f.Reach[0].Recorded)
	}
	for _, c := range []struct{ old, replacement, want string }{
		{`"remote":"ssh","upstream"`, `"remote":"vnc","upstream"`, `publish spiffe://demo.flor/service/shell: record of a service with sessions over "vnc", want "ssh"`},
		{`"remote":"ssh","upstream"`, `"upstream"`, `record of a service with sessions over "", want "ssh"`},
		{`"remote":"ssh","callers"`, `"callers"`, `reach spiffe://demo.flor/service/shell: recorded with sessions over "", want "ssh"`},
		{`["` + first + `","` + second + `"]`, `[]`, "record without recipients"},
		{first, second, `record for recipient "` + second + `": given twice`},
		{`["` + first + `","` + second + `"]`, `["` + second + `","` + first + `"]`, "not sorted"},
		{first, "AGE-SECRET-KEY-1", `record for recipient "AGE-SECRET-KEY-1", want an age public key`},
		{`"days":90`, `"days":0`, "record for 0 days, want 1 to 3650"},
		{`"days":90`, `"days":3651`, "record for 3651 days"},
	} {
		text := strings.Replace(whole, c.old, c.replacement, 1)
		if _, err := document.Open(envelope(t, text, nil), []byte(text), ""); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", c.replacement, err, c.want)
		}
	}
}
