package control

import (
	"cmp"
	"errors"
	"io/fs"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/providers/tlog"
)

// Logged is a page of rows of a tamper-evident audit log, in the order in which they were added to
// the log.
type Logged struct {
	Rows []tlog.Logged `json:"rows"`
}

// AuditLogs lists the kinds of need whose audit logs operators can read through this API.
type AuditLogs struct {
	Kinds []string `json:"kinds"`
}

func (c *call) auditLogs() (any, error) {
	all, err := c.Logs()
	return AuditLogs{slices.Sorted(maps.Keys(all))}, err
}

// auditLog returns the audit log of the kind that the request names. If the request names no kind,
// it returns the log of kind config.
func (c *call) auditLog() (tlog.Local, error) {
	all, err := c.Logs()
	if err != nil {
		return tlog.Local{}, err
	}
	kind := c.logKind()
	log, ok := all[kind]
	if !ok {
		return log, hostapi.Errorf(hostapi.CodeMissingInvalid, "kind %.40q, want one whose audit log can be read here (%s): read others on the provider's host, as root: flor-provider audit",
			kind, strings.Join(slices.Sorted(maps.Keys(all)), ", "))
	}
	return log, nil
}

func (c *call) logKind() string { return cmp.Or(c.r.URL.Query().Get("kind"), document.KindConfig) }

func (c *call) auditHead() (any, error) {
	log, err := c.auditLog()
	if err != nil {
		return nil, err
	}
	h, err := log.Head(c.r.Context())
	return h, c.unlogged(err)
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
	log, err := c.auditLog()
	if err != nil {
		return nil, err
	}
	_, newest, err := log.Checkpoint(c.r.Context())
	if err != nil {
		return nil, c.unlogged(err)
	}
	if size > newest.Size {
		return nil, hostapi.Errorf(hostapi.CodeMalformed, "size %d, the log has %d rows", size, newest.Size)
	}
	rows, err := log.Rows(c.r.Context(), from, size)
	return Logged{append([]tlog.Logged{}, rows...)}, err
}

func (c *call) auditProof() (any, error) {
	log, err := c.auditLog()
	if err != nil {
		return nil, err
	}
	p, err := log.Proof(c.r.Context(), c.r.URL.Query().Get("row"))
	if errors.Is(err, tlog.ErrNoRow) {
		return nil, hostapi.Errorf(hostapi.CodeMalformed, "row %v", err)
	}
	return p, c.unlogged(err)
}

// index parses a parameter of a request that is a number of rows in an audit log.
func (c *call) index(name string) (uint64, error) {
	text := c.r.URL.Query().Get(name)
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return 0, hostapi.Errorf(hostapi.CodeMalformed, "%s %.30q, want a number of rows", name, text)
	}
	return n, nil
}

// unlogged returns the error for a tamper-evident log that does not exist yet.
func (c *call) unlogged(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return hostapi.Errorf(hostapi.CodeUnavailable, "the audit log of kind %s has no checkpoint yet: it begins within seconds after the provider's process", c.logKind())
	}
	return err
}
