package control

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/providers/server"
)

// Audit is a page of rows of one audit log, oldest first. Next is the position of the next page. It
// is empty on the last page.
type Audit struct {
	Rows []server.Row `json:"rows"`
	Next string       `json:"next"`
}

func (c *call) audit() (any, error) {
	log, err := c.auditLog()
	if err != nil {
		return nil, err
	}
	first := ""
	if text := c.r.URL.Query().Get("since"); text != "" {
		since, err := time.Parse(time.RFC3339Nano, text)
		if err != nil || since.Year() > 2200 {
			return nil, hostapi.Errorf(hostapi.CodeMalformed, "since %.40q, want a time such as 2026-07-14T08:30:00Z", text)
		}
		first = server.AuditAfter(since)
	}
	entries, next, err := c.page(log.Store, log.Prefix, first)
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
