package auditview

import (
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strings"
	"testing"
	"time"

	"github.com/florete/florete/providers/server"
	"github.com/florete/florete/providers/tlog"
)

var noon = time.Date(2026, 7, 14, 12, 0, 0, 0, time.UTC)

// pages serves a log of needs, one of each minute, as pages.
func pages(t *testing.T, at string, size int, minutes ...int) iter.Seq2[Row, error] {
	t.Helper()
	return Read(at, func(after string) (rows []json.RawMessage, next string, err error) {
		from := 0
		if after != "" {
			_, err = fmt.Sscan(after, &from)
		}
		for _, m := range minutes[from:min(from+size, len(minutes))] {
			text, e := json.Marshal(server.Row{Time: noon.Add(time.Duration(m) * time.Minute), Need: fmt.Sprint(m), Caller: "spiffe://demo.flor/node/" + at, Outcome: server.Granted})
			if e != nil {
				t.Fatal(e)
			}
			rows = append(rows, text)
		}
		if from+size < len(minutes) {
			next = fmt.Sprint(from + size)
		}
		return rows, next, err
	})
}

func printed(t *testing.T, rows iter.Seq2[Row, error]) string {
	t.Helper()
	var out strings.Builder
	if err := Print(&out, rows, false); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// TestMerge checks that logs of several hosts are merged by time, and that each row names its host.
func TestMerge(t *testing.T) {
	both := Merge([]iter.Seq2[Row, error]{pages(t, "ursula", 2, 0, 3, 4, 9, 10), pages(t, "forge", 1, 1, 2, 5)})
	got := ""
	for r, err := range both {
		if err != nil || r.Caller != "spiffe://demo.flor/node/"+r.At {
			t.Fatalf("%+v, %v", r, err)
		}
		got += " " + r.Need
	}
	if got != " 0 1 2 3 4 5 9 10" {
		t.Errorf("merged%s", got)
	}
}

// TestLogThatEnds checks that rows that were read before a log failed are printed, and that the
// error is returned.
func TestLogThatEnds(t *testing.T) {
	cut := errors.New("cut")
	log := Read("ursula", func(after string) ([]json.RawMessage, string, error) {
		if after == "" {
			return []json.RawMessage{[]byte(`{"need":"one"}`)}, "1", nil
		}
		return nil, "", cut
	})
	var out strings.Builder
	if err := Print(&out, Merge([]iter.Seq2[Row, error]{log}), true); !errors.Is(err, cut) || out.String() != "{\"need\":\"one\"}\n" {
		t.Errorf("%v after %q", err, out.String())
	}
}

// TestPrinted checks that the table begins with its columns, with one for the host if there are
// several. Rows repeated within a minute become one line, and only printable text reaches the
// terminal.
func TestPrinted(t *testing.T) {
	all := []Row{}
	add := func(second int, r server.Row) {
		r.Time = noon.Add(time.Duration(second) * time.Second)
		all = append(all, Row{Row: r})
	}
	policy := server.Row{Outcome: "changed", Code: "in-force", Kind: "policy", Message: "serial 7 came into force"}
	denied := server.Row{Outcome: "denied", Code: "mismatch", Kind: "cert", Caller: "spiffe://demo.flor/node/ursula", From: "192.0.2.3:1", Need: "x\x1b[2J"}
	add(0, policy)
	add(1, denied)
	add(2, policy)
	add(3, policy)
	add(4, denied)
	add(61, denied)
	rows := func(yield func(Row, error) bool) {
		for _, r := range all {
			if !yield(r, nil) {
				return
			}
		}
	}
	want := `TIME                  DECISION  CODE      KIND    NEED   CALLER                          FROM         MESSAGE
2026-07-14T12:00:00Z  changed   in-force  policy                                                      serial 7 came into force (3 times until 12:00:03)
2026-07-14T12:00:01Z  denied    mismatch  cert    x·[2J  spiffe://demo.flor/node/ursula  192.0.2.3:1  (2 times until 12:00:04)
2026-07-14T12:01:01Z  denied    mismatch  cert    x·[2J  spiffe://demo.flor/node/ursula  192.0.2.3:1  
`
	if out := printed(t, rows); out != want {
		t.Errorf("%s, want\n%s", out, want)
	}
	all[0].At = "forge"
	all = all[:1]
	if out := strings.Fields(printed(t, rows)); out[0] != "HOST" || out[1] != "TIME" || out[9] != "forge" {
		t.Errorf("%q", out)
	}
}

// TestManyRows checks that columns are aligned for a number of lines at a time, under one heading,
// and that no row is lost.
func TestManyRows(t *testing.T) {
	minutes := make([]int, 2*together+7)
	for i := range minutes {
		minutes[i] = i
	}
	if lines := strings.Split(printed(t, pages(t, "ursula", 100, minutes...)), "\n"); len(lines) != len(minutes)+2 || strings.Count(strings.Join(lines, "\n"), "DECISION") != 1 {
		t.Errorf("%d lines", len(lines))
	}
}

// TestVerdicts checks that rows that were not verified are reported without a fault, and that an
// edited row is a fault.
func TestVerdicts(t *testing.T) {
	kept := time.Date(2025, 7, 14, 0, 0, 0, 0, time.UTC)
	for want, v := range map[string]tlog.Verdict{
		"log: 9 rows, verified\n":                        {},
		"log: 9 rows, verified\n  4 rows are archived\n": {Archived: 4},
		"log: 9 rows, verified\n  4 rows are archived\n  3 of them, of before 2025-07-14, are not in the archive of this host, and were not verified\n": {Archived: 4, Elsewhere: 3},
		"log: 9 rows, NOT verified: 1 rows were edited, 0 are gone\n  4 rows are archived\n  row 2 was edited in the archive\n":                         {Archived: 4, Edited: 1, Faults: []string{"row 2 was edited in the archive"}},
	} {
		v.Log, v.Rows, v.Kept = "log", 9, kept
		var out strings.Builder
		err := PrintVerdicts(&out, []tlog.Verdict{v}, false)
		if out.String() != want || errors.Is(err, ErrNotVerified) != (len(v.Faults) > 0) {
			t.Errorf("%q, %v, want %q", &out, err, want)
		}
	}
}
