package control

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strconv"
	"time"

	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/providers/advance"
	"github.com/florete/florete/providers/announced"
	"github.com/florete/florete/providers/archive"
	"github.com/florete/florete/providers/rollout"
	"github.com/florete/florete/providers/server"
	"github.com/florete/florete/providers/store"
)

// These are the audit codes of operators' acts.
const (
	CodePublish  = "publish"
	CodeRollback = server.CodeRollback
)

// maxBody is the largest size of published documents in bytes. It is enough for 10,000 hosts with
// 100 KB each.
const maxBody = 1 << 30

// patience is the longest time for receiving the body of a request.
const patience = 10 * time.Minute

// Versions lists the published versions that the provider keeps, newest first.
type Versions struct {
	Versions []archive.Version `json:"versions"`
}

// Published is the result of publishing a version, or of a rollback.
type Published struct {
	Version archive.Version `json:"version"`
	Changed bool            `json:"changed"` // false if the same version was published before

	// Rollout is the rollout of the version. It is absent if the version is offered to all hosts at
	// once.
	Rollout *rollout.State `json:"rollout,omitempty"`
}

func (c *call) versions() (any, error) {
	all, err := c.Archive.Versions(c.r.Context())
	return Versions{append([]archive.Version{}, all...)}, err
}

func (c *call) serial() (int64, error) {
	serial, err := strconv.ParseInt(c.r.PathValue("serial"), 10, 64)
	if err != nil {
		return 0, hostapi.Errorf(hostapi.CodeMalformed, "serial %.30q, want one that /v1/versions has", c.r.PathValue("serial"))
	}
	return serial, nil
}

// version returns the version that the request names, if the provider keeps it.
func (c *call) version() (v archive.Version, err error) {
	serial, err := c.serial()
	if err != nil {
		return v, err
	}
	all, err := c.Archive.Versions(c.r.Context())
	if err != nil {
		return v, err
	}
	i := slices.IndexFunc(all, func(v archive.Version) bool { return v.Serial == serial })
	if i < 0 {
		return v, hostapi.Errorf(hostapi.CodeMissingInvalid, "serial %d, want one that /v1/versions has", serial)
	}
	return all[i], nil
}

// export sends the documents of a version. If the transfer is cut short, the caller can tell.
func (c *call) export() (any, error) {
	v, err := c.version()
	if err != nil {
		return nil, err
	}
	c.w.Header().Set("Content-Type", "application/jsonl")
	c.w.Header().Set("Cache-Control", "no-store")
	if err := c.Archive.Export(c.r.Context(), v.Serial, announced.Answer(c.w, patience)); err != nil {
		c.Logger.Warn("an export was cut short", "serial", v.Serial, "caller", c.row.Caller, "error", err)
		panic(http.ErrAbortHandler)
	}
	return nil, nil
}

func (c *call) publish() (any, error) {
	c.row.Code = CodePublish
	atOnce, err := c.isTrue("atOnce")
	if err != nil {
		return nil, err
	}
	return c.importBody(atOnce, func(archive.Version) error { return nil })
}

// isTrue reports whether a request parameter is "true". It returns an error if the parameter has
// any other value.
func (c *call) isTrue(name string) (bool, error) {
	value := c.r.URL.Query().Get(name)
	if value != "" && value != "true" {
		return false, hostapi.Errorf(hostapi.CodeMalformed, "%s %.30q, want true, or nothing", name, value)
	}
	return value != "", nil
}

// rollback publishes the documents of an earlier version to all hosts at once. The caller has
// signed the documents again under a new serial.
func (c *call) rollback() (any, error) {
	c.row.Code = CodeRollback
	to, err := c.version()
	if err != nil {
		return nil, err
	}
	return c.importBody(true, func(next archive.Version) error {
		if next.Content != to.Content {
			return hostapi.Errorf(hostapi.CodeMismatchInvalid, "the documents are not those of serial %d: publish them, or export that version and sign it anew", to.Serial)
		}
		return nil
	})
}

// importBody publishes the documents in the request's body. It receives the body completely before
// it begins the import, so that a slow caller does not delay other imports.
func (c *call) importBody(atOnce bool, fits func(archive.Version) error) (any, error) {
	beyond, err := c.isTrue("beyondBudget")
	if err != nil {
		return nil, err
	}
	f, err := os.CreateTemp(c.Spool, "received-")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if err := os.Remove(f.Name()); err != nil {
		return nil, err
	}
	if _, err := io.Copy(f, announced.Body(c.w, c.r, maxBody, patience)); err != nil {
		return nil, hostapi.Errorf(hostapi.CodeMalformed, "body: %v: want at most %d bytes, sent without delay", err, maxBody)
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	r, err := archive.NewStreamReader(f)
	if err != nil {
		return nil, malformed(&archive.Refusal{Err: err})
	}
	var p Published
	p.Version, p.Changed, err = c.Archive.Import(c.r.Context(), r, archive.Terms{
		Signers: c.policy.Trust.Signers(), Keep: c.Keep, Host: c.policy.Host, AtOnce: atOnce, BeyondBudget: beyond, Before: advance.Before(c.Archive),
		Record: func(last, next archive.Version, r archive.Rollout) ([]store.Op, error) {
			if err := fits(next); err != nil {
				return nil, err
			}
			c.done(last, next)
			if r.AtWork() {
				p.Rollout = &r.State
				c.row.Message = advance.Describe(r.State)
			}
			return []store.Op{c.row.Op()}, nil
		},
	})
	switch {
	case err != nil:
		return nil, malformed(err)
	case !p.Changed:
		c.done(p.Version, p.Version)
		err = c.Audit.Write(c.r.Context(), c.row)
	default:
		c.row.Log(c.r.Context(), c.Logger)
	}
	return p, err
}

// malformed converts an error that bad documents caused to a refusal. It returns other errors
// unchanged.
func malformed(err error) error {
	var refusal *archive.Refusal
	if !errors.As(err, &refusal) {
		return err
	}
	return hostapi.Errorf(hostapi.CodeMalformed, "documents: %v", err)
}

// done adds the versions that were served before and after an act to the audit row of the act.
func (c *call) done(last, next archive.Version) {
	c.row.Outcome, c.row.Serial = server.Granted, next.Serial
	c.row.Message = fmt.Sprintf("serial %d is served, before it %d", next.Serial, last.Serial)
	c.row.Detail = map[string]string{
		"before": fmt.Sprintf("serial %d, content %s", last.Serial, last.Content),
		"after":  fmt.Sprintf("serial %d, content %s", next.Serial, next.Content),
		"signer": next.Signer, "rev": next.Rev, "hosts": fmt.Sprint(next.Hosts),
	}
}
