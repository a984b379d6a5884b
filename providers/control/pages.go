package control

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	wire "github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/internal/hostreport"
	"github.com/florete/florete/internal/unixtime"
	"github.com/florete/florete/providers/server"
	"github.com/florete/florete/providers/store"
)

// maxPage is how many there are in a page at most, and unless the caller wants fewer.
const maxPage = 100

// Hosts are a page of what hosts reported last, by name. Next is where the next page
// begins, empty after the last.
type Hosts struct {
	Hosts []Host `json:"hosts"`
	Next  string `json:"next"`
}

// Host is the last report of one.
type Host struct {
	Host string `json:"host"`
	hostreport.Kept
}

// Needs are a page of how needs stand, those of some hosts.
type Needs struct {
	Needs []Need `json:"needs"`
	Next  string `json:"next"`
}

// Need is how one stood when its host reported.
type Need struct {
	Host     string        `json:"host"`
	Received unixtime.Time `json:"received"`
	hostreport.Need
}

// Audit is a page of what this provider decided, oldest first.
type Audit struct {
	Rows []server.Row `json:"rows"`
	Next string       `json:"next"`
}

// page reads entries below a prefix after where the caller's last page ended, and where the
// next begins.
func (c *call) page(prefix, first string) (entries []store.Entry, next string, err error) {
	q := c.r.URL.Query()
	limit := maxPage
	if text := q.Get("limit"); text != "" {
		if limit, err = strconv.Atoi(text); err != nil || limit < 1 || limit > maxPage {
			return nil, "", wire.Errorf(wire.CodeMalformed, "limit %.30q, want 1 to %d", text, maxPage)
		}
	}
	after := first
	if text := q.Get("after"); text != "" {
		after = prefix + text
	}
	entries, err = c.Archive.Page(c.r.Context(), prefix, after, limit)
	if len(entries) == limit {
		next = strings.TrimPrefix(entries[limit-1].Key, prefix)
	}
	return entries, next, err
}

func (c *call) reports() (all []Host, next string, err error) {
	entries, next, err := c.page(server.ReportPrefix, "")
	all = []Host{}
	for _, e := range entries {
		h := Host{Host: strings.TrimPrefix(e.Key, server.ReportPrefix)}
		if err := json.Unmarshal(e.Value, &h.Kept); err != nil {
			return nil, "", fmt.Errorf("%s: %w", e.Key, err)
		}
		if h.Sequence != 0 { // else it has orders alone
			all = append(all, h)
		}
	}
	return all, next, err
}

func (c *call) hosts() (any, error) {
	all, next, err := c.reports()
	return Hosts{all, next}, err
}

func (c *call) needs() (any, error) {
	hosts, next, err := c.reports()
	if err != nil {
		return nil, err
	}
	all := []Need{}
	for _, h := range hosts {
		report, err := h.Decode()
		if err != nil {
			continue // it is the host's word, and hides nobody else's: florctl status names it
		}
		for _, n := range report.Needs {
			all = append(all, Need{h.Host, h.Received, n})
		}
	}
	return Needs{all, next}, nil
}

func (c *call) audit() (any, error) {
	first := ""
	if text := c.r.URL.Query().Get("since"); text != "" {
		since, err := time.Parse(time.RFC3339Nano, text)
		if err != nil || since.Year() > 2200 {
			return nil, wire.Errorf(wire.CodeMalformed, "since %.40q, want a time such as 2026-07-14T08:30:00Z", text)
		}
		first = server.AuditAfter(since)
	}
	entries, next, err := c.page(server.AuditPrefix, first)
	rows := []server.Row{}
	for _, e := range entries {
		var row server.Row
		if err := json.Unmarshal(e.Value, &row); err != nil {
			return nil, fmt.Errorf("%s: %w", e.Key, err)
		}
		rows = append(rows, row)
	}
	return Audit{rows, next}, err
}

//go:embed openapi.json
var openAPI []byte

func (c *call) openAPI() (any, error) { return json.RawMessage(openAPI), nil }
