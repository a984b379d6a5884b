// Package auditview reads, selects and prints rows of providers' audit logs.
package auditview

import (
	"encoding/json"
	"fmt"
	"iter"

	"github.com/florete/florete/providers/server"
)

// A Row is one decision in an audit log.
type Row struct {
	server.Row
	Text json.RawMessage // as it was written
	At   string          // the host that decided it, where logs of several are read
}

// Parse parses the JSON text of a row.
func Parse(text json.RawMessage) (Row, error) {
	r := Row{Text: text}
	if err := json.Unmarshal(text, &r.Row); err != nil {
		return r, fmt.Errorf("row of an audit log: %w", err)
	}
	return r, nil
}

// Read yields the rows of pages, oldest first. page returns the rows that follow after and the
// position of the next page, which is empty after the last. The first page is at.
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

// Merge merges logs by time.
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
