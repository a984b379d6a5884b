package control_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/florete/florete/providers/control"
	"github.com/florete/florete/providers/tlog"
)

// logged waits until each row is in the log, and returns how many there are.
func (e *env) logged() (size uint64) {
	e.t.Helper()
	e.until("a log of all rows", func() bool {
		_, c, err := e.Log.Checkpoint(e.t.Context())
		size = c.Size
		return err == nil && int(c.Size) == len(e.Rows())
	})
	return size
}

// An act of an operator is in the log, which proves it.
func TestLog(t *testing.T) {
	e := start(t)
	e.answer(alice, "POST", "/v1/publish", e.text(1000, "one"), &control.Published{})
	e.logged()
	rows := e.Rows()
	var p tlog.Proof
	e.answer(bob, "GET", "/v1/audit/log/proof?row="+rows[len(rows)-1].Time.Format("2006-01-02T15:04:05.999999999Z07:00"), nil, &p)
	if err := p.Verify(); err != nil || p.Row == nil || !strings.Contains(*p.Row, alice.String()) {
		t.Errorf("%+v, %v", p, err)
	}
	other := *p.Row + " "
	p.Row = &other
	if err := p.Verify(); err == nil || !strings.Contains(err.Error(), "was edited") {
		t.Error(err)
	}
	var logs control.AuditLogs
	if e.answer(bob, "GET", "/v1/audit/logs", nil, &logs); !slices.Equal(logs.Kinds, []string{"config"}) {
		t.Errorf("through the forwarder the logs of %v can be read", logs.Kinds)
	}
	for path, want := range map[string]string{
		"/v1/audit/log/proof?row=2020-01-01T00:00:00Z": "no such row",
		"/v1/audit/log/proof?row=other":                "no such row",
		"/v1/audit/log/rows?from=0&size=10000":         "the log has",
		"/v1/audit/log/rows?from=-1&size=1":            "want a number of rows",
		"/v1/audit?kind=cert":                          "want one whose audit log can be read here (config)",
		"/v1/audit/log?kind=cert":                      "want one whose audit log can be read here (config)",
		"/v1/audit/log/rows?kind=cert&from=0&size=1":   "want one whose audit log can be read here (config)",
		"/v1/audit/log/proof?kind=cert&row=other":      "want one whose audit log can be read here (config)",
	} {
		if status, b := e.do(bob, e.request("GET", path, nil)); status == http.StatusOK || !strings.Contains(string(b), want) {
			t.Errorf("%s: %d %s, want %q", path, status, b, want)
		}
	}
}
