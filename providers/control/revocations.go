package control

import (
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/florete/florete"
	wire "github.com/florete/florete/providers/api"
	"github.com/florete/florete/providers/archive"
	"github.com/florete/florete/providers/server"
	"github.com/florete/florete/providers/store"
)

// CodeRevoke is that of a new revocation list in the audit log.
const CodeRevoke = "revoke"

func (c *call) revocations() (any, error) { return c.Archive.Revocations(c.r.Context()) }

// setRevocations offers hosts the list that the caller sends.
func (c *call) setRevocations() (any, error) {
	c.row.Code = CodeRevoke
	var s florete.SignedRevocations
	b, err := io.ReadAll(http.MaxBytesReader(c.w, c.r.Body, 2*florete.MaxRevocations))
	if err == nil {
		err = florete.Decode(b, &s)
	}
	if err != nil {
		return nil, wire.Errorf(wire.Invalid, wire.CodeMalformed, "body: %v: want a list as florctl revoke signs it", err)
	}
	next, changed, err := c.Archive.SetRevocations(c.r.Context(), s, archive.ListTerms{
		Cluster: c.policy.Cluster, Keys: c.policy.Trust.SigningKeys,
		Record: func(last, next archive.Revocations) []store.Op {
			c.row = RevokedRow(c.row, last, next)
			return []store.Op{c.row.Op()}
		},
	})
	if errors.Is(err, store.ErrUnavailable) {
		return nil, err
	}
	if err != nil {
		return nil, wire.Errorf(wire.Invalid, wire.CodeMalformed, "%v", err)
	}
	if changed {
		c.row.Log(c.r.Context(), c.Logger)
	}
	return next, nil
}

// RevokedRow is the audit row of a new revocation list.
func RevokedRow(r server.Row, last, next archive.Revocations) server.Row {
	r.Outcome, r.Code, r.Serial = server.Granted, CodeRevoke, next.Number
	r.Message = fmt.Sprintf("revocation list %d is offered to all hosts", next.Number)
	r.Detail = map[string]string{"before": describeList(last), "after": describeList(next)}
	return r
}

func describeList(r archive.Revocations) string {
	if r.Number == 0 {
		return "none"
	}
	return fmt.Sprintf("list %d with %d entries", r.Number, r.Entries)
}
