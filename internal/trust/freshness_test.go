package trust_test

import (
	"testing"
	"time"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/trust"
	"github.com/florete/florete/internal/unixtime"
)

// TestWithheldDocuments checks which documents a revocation list allows.
func TestWithheldDocuments(t *testing.T) {
	now := time.Now().Truncate(time.Second)
	at := func(d time.Duration) unixtime.Time { return unixtime.Of(now.Add(d)) }
	manifest := document.Envelope{Kind: document.DocManifest, Serial: 20, Rev: "b"}
	for name, c := range map[string]struct {
		named  trust.NamedDocuments
		policy int64
		want   string
	}{
		"the named version":            {trust.NamedDocuments{Serial: 20, Rev: "b", Due: at(-1)}, 20, ""},
		"of a newer version":           {trust.NamedDocuments{Serial: 19, Due: at(-1)}, 21, ""},
		"not due yet":                  {trust.NamedDocuments{Serial: 30, Due: at(time.Second)}, 10, ""},
		"due now":                      {trust.NamedDocuments{Serial: 30, Due: at(0)}, 30, "its manifest has serial 20, and revocation list 4 names serial 30, which was due by " + now.UTC().Format(time.RFC3339)},
		"another version's policy":     {trust.NamedDocuments{Serial: 20, Rev: "b", Due: at(0)}, 19, "its policy has serial 19, and revocation list 4 names serial 20, which was due by " + now.UTC().Format(time.RFC3339)},
		"another of the same serial":   {trust.NamedDocuments{Serial: 20, Rev: "c", Due: at(0)}, 20, `its manifest of serial 20 has revision "b", and revocation list 4 names another version with this serial`},
		"another, which is not due":    {trust.NamedDocuments{Serial: 20, Rev: "c", Due: at(time.Second)}, 20, ""},
		"an earlier one is due":        {trust.NamedDocuments{Serial: 40, Due: at(9), Earlier: []trust.EarlierDocuments{{Serial: 15, Due: at(-2)}, {Serial: 25, Due: at(-1)}}}, 25, "its manifest has serial 20, and revocation list 4 names serial 25, which was due by " + at(-1).UTC().Format(time.RFC3339)},
		"an earlier one is not due":    {trust.NamedDocuments{Serial: 40, Due: at(time.Minute), Earlier: []trust.EarlierDocuments{{Serial: 15, Due: at(-2)}, {Serial: 25, Due: at(time.Second)}}}, 25, ""},
		"gone back":                    {trust.NamedDocuments{Serial: 19, Back: 20, Due: at(0)}, 20, "its manifest of serial 20 is from before serial 19, whose rollout was to end by " + now.UTC().Format(time.RFC3339) + " according to revocation list 4: publish again"},
		"gone back a moment ago":       {trust.NamedDocuments{Serial: 19, Back: 20, Due: at(time.Second)}, 20, ""},
		"gone back from an earlier":    {trust.NamedDocuments{Serial: 40, Due: at(9), Earlier: []trust.EarlierDocuments{{Serial: 19, Back: 20, Due: at(-1)}}}, 20, "its manifest of serial 20 is from before serial 19, whose rollout was to end by " + at(-1).UTC().Format(time.RFC3339) + " according to revocation list 4: publish again"},
		"revisions that are not named": {trust.NamedDocuments{Serial: 20, Due: at(-1)}, 20, ""},
	} {
		list := &trust.Revocations{Number: 4, Documents: &c.named}
		if got := list.Withheld([]document.Envelope{manifest, {Kind: document.DocPolicy, Serial: c.policy, Rev: "b"}}, now).String(); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
	if w := (*trust.Revocations)(nil).Withheld([]document.Envelope{manifest}, now); w != nil {
		t.Error("without a list:", w)
	}
	if w := (&trust.Revocations{Number: 4}).Withheld([]document.Envelope{manifest}, now); w != nil {
		t.Error("a list that names none:", w)
	}
}

// TestBackPublished checks that a list no longer names the documents to which hosts return, once
// another version was published with their serial.
func TestBackPublished(t *testing.T) {
	now := time.Now().Truncate(time.Second)
	for next, want := range map[int64]int64{20: 0, 21: 20} {
		list := &trust.Revocations{Documents: &trust.NamedDocuments{Serial: 19, Back: 20, Due: unixtime.Of(now)}}
		list.NameDocuments(trust.NamedDocuments{Serial: next, Due: unixtime.Of(now.Add(time.Hour))}, now, time.Minute)
		if earlier := list.Documents.Earlier; len(earlier) != 1 || earlier[0].Serial != 19 || earlier[0].Back != want {
			t.Errorf("before serial %d: %+v, want serial 19 with way back %d", next, earlier, want)
		}
	}
}

// TestListEnds checks at which times Ends warns that a newer revocation list is due.
func TestListEnds(t *testing.T) {
	now := time.Now().Truncate(time.Second)
	day := 24 * time.Hour
	for _, c := range []struct{ lifetime, left, want time.Duration }{
		{30 * day, 8 * day, 0}, {30 * day, 7*day - time.Second, 7*day - time.Second}, {30 * day, 0, time.Second}, {30 * day, -time.Second, 0},
		{time.Hour, 20 * time.Minute, 0}, {time.Hour, 10 * time.Minute, 10 * time.Minute},
	} {
		r := &trust.ReportedRevocations{Number: 1, NextUpdate: unixtime.Of(now.Add(c.left)), Signed: unixtime.Of(now.Add(c.left - c.lifetime))}
		if got := r.Ends(now); got != c.want {
			t.Errorf("%s before the end of %s: %s, want %s", c.left, c.lifetime, got, c.want)
		}
	}
	if got := (&trust.ReportedRevocations{Number: 1, NextUpdate: unixtime.Of(now.Add(time.Hour))}).Ends(now); got != 0 {
		t.Errorf("in a report of an earlier release: %s", got)
	}
}
