// Package auditview reads, selects and prints the rows of providers' audit logs. The audit commands
// of florctl and flor-provider use it.
package auditview

import (
	"encoding/json"
	"fmt"
	"iter"

	"github.com/florete/florete/providers/server"
)

// A Row is one row of an audit log. It usually records one decision of a provider.
type Row struct {
	server.Row
	Text json.RawMessage // text of the row as it was written
	At   string          // host of the log, if logs of several hosts are read
}

// Parse parses an audit row from its JSON text.
func Parse(text json.RawMessage) (Row, error) {
	r := Row{Text: text}
	if err := json.Unmarshal(text, &r.Row); err != nil {
		return r, fmt.Errorf("row of an audit log: %w", err)
	}
	return r, nil
}

// Read yields the rows of an audit log that is fetched page by page, oldest first. It calls page
// with the position of the wanted page, which is "" for the first. The function page returns the
// rows of that page and the position of the next page, or "" after the last page. The first
// argument of Read is the name of the host with the log, and becomes the field At of each row. Read
// ends at the first error.
func Read(at string, page func(after string) (rows []json.RawMessage, next string, err error)) iter.Seq2[Row, error] {
	return func(yield func(Row, error) bool) {
		for after := ""; ; {
			rows, next, err := page(after)
			if err != nil {
				yield(Row{}, err)
				return
			}
			for _, text := range rows {
				r, err := Parse(text)
				r.At = at
				if !yield(r, err) || err != nil {
					return
				}
			}
			if after = next; after == "" {
				return
			}
		}
	}
}

// Merge merges several audit logs into one, in the order of time.
func Merge(logs []iter.Seq2[Row, error]) iter.Seq2[Row, error] {
	return func(yield func(Row, error) bool) {
		type head struct {
			row  Row
			err  error
			next func() (Row, error, bool)
		}
		var heads []head
		for _, l := range logs {
			next, stop := iter.Pull2(l)
			defer stop()
			if row, err, ok := next(); ok {
				heads = append(heads, head{row, err, next})
			}
		}
		for len(heads) > 0 {
			first := 0
			for i, h := range heads {
				if h.err != nil || heads[first].err == nil && h.row.Time.Before(heads[first].row.Time) {
					first = i
				}
			}
			h := &heads[first]
			if !yield(h.row, h.err) || h.err != nil {
				return
			}
			var ok bool
			if h.row, h.err, ok = h.next(); !ok {
				heads = append(heads[:first], heads[first+1:]...)
			}
		}
	}
}
