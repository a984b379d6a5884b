package control

import (
	"errors"
	"io/fs"
	"strconv"

	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/providers/tlog"
)

// Logged is a page of rows of the tamper-evident log, in its order.
type Logged struct {
	Rows []tlog.Logged `json:"rows"`
}

func (c *call) auditHead() (any, error) {
	h, err := c.Log.Local().Head(c.r.Context())
	return h, unlogged(err)
}

func (c *call) auditRows() (any, error) {
	from, err := c.index("from")
	if err != nil {
		return nil, err
	}
	size, err := c.index("size")
	if err != nil {
		return nil, err
	}
	_, newest, err := c.Log.Checkpoint(c.r.Context())
	if err != nil {
		return nil, unlogged(err)
	}
	if size > newest.Size {
		return nil, hostapi.Errorf(hostapi.CodeMalformed, "size %d, the log has %d rows", size, newest.Size)
	}
	rows, err := c.Log.Local().Rows(c.r.Context(), from, size)
	return Logged{append([]tlog.Logged{}, rows...)}, err
}

func (c *call) auditProof() (any, error) {
	p, err := c.Log.Local().Proof(c.r.Context(), c.r.URL.Query().Get("row"))
	if errors.Is(err, tlog.ErrNoRow) {
		return nil, hostapi.Errorf(hostapi.CodeMalformed, "row %v", err)
	}
	return p, unlogged(err)
}

// index is a parameter that counts rows.
func (c *call) index(name string) (uint64, error) {
	text := c.r.URL.Query().Get(name)
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return 0, hostapi.Errorf(hostapi.CodeMalformed, "%s %.30q, want a number of rows", name, text)
	}
	return n, nil
}

// unlogged is the error of a log that has not begun.
func unlogged(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return hostapi.Errorf(hostapi.CodeUnavailable, "the audit log has no checkpoint yet")
	}
	return err
}
