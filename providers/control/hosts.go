package control

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/internal/hostreport"
	"github.com/florete/florete/internal/unixtime"
	"github.com/florete/florete/providers/server"
	"github.com/florete/florete/providers/store"
)

// maxPage is the largest number of entries in a page. It is also the number if a request gives
// none.
const maxPage = 100

// Hosts is a page of the last reports of hosts, sorted by the name of the host. Next is the
// position of the next page. It is empty on the last page.
type Hosts struct {
	Hosts []Host `json:"hosts"`
	Next  string `json:"next"`
}

// Host contains the last report that a host sent about its state, and the time at which the
// provider received it.
type Host struct {
	Host string `json:"host"`
	hostreport.Kept
}

// Needs is a page of needs, such as certificates and secrets, in the states that their hosts last
// reported. Next is the position of the next page. It is empty on the last page.
type Needs struct {
	Needs []Need `json:"needs"`
	Next  string `json:"next"`
}

// Need is a certificate, secret or the like that a host requests, in the state that the host last
// reported, with the time at which the provider received the report.
type Need struct {
	Host     string        `json:"host"`
	Received unixtime.Time `json:"received"`
	hostreport.Need
}

// page reads a page of the entries whose keys have a prefix. The argument first is the position of
// the page. page also returns the position of the next page.
func (c *call) page(s store.Store, prefix, first string) (entries []store.Entry, next string, err error) {
	q := c.r.URL.Query()
	limit := maxPage
	if text := q.Get("limit"); text != "" {
		if limit, err = strconv.Atoi(text); err != nil || limit < 1 || limit > maxPage {
			return nil, "", hostapi.Errorf(hostapi.CodeMalformed, "limit %.30q, want 1 to %d", text, maxPage)
		}
	}
	after := first
	if text := q.Get("after"); text != "" {
		after = prefix + text
	}
	entries, err = s.Page(c.r.Context(), prefix, after, limit)
	if len(entries) == limit {
		next = strings.TrimPrefix(entries[limit-1].Key, prefix)
	}
	return entries, next, err
}

func (c *call) reports() (all []Host, next string, err error) {
	entries, next, err := c.page(c.Archive.Store, server.ReportPrefix, "")
	all = []Host{}
	for _, e := range entries {
		h := Host{Host: strings.TrimPrefix(e.Key, server.ReportPrefix)}
		if err := json.Unmarshal(e.Value, &h.Kept); err != nil {
			return nil, "", fmt.Errorf("%s: %w", e.Key, err)
		}
		if h.Sequence != 0 { // the host has reported; without a report the record contains only orders
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
