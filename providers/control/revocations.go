package control

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/internal/strictjson"
	"github.com/florete/florete/internal/trust"
	"github.com/florete/florete/providers/archive"
	"github.com/florete/florete/providers/server"
	"github.com/florete/florete/providers/store"
)

// These constants limit the names of revoked targets in an audit row: shownTargets in the row's
// message, and maxTargets in total. The row is in one transaction with the revocation list.
const shownTargets, maxTargets = 10, 500

func (c *call) revocations() (any, error) { return c.Archive.Revocations(c.r.Context()) }

// setRevocations replaces the revocation list that hosts are offered with the list in the request.
func (c *call) setRevocations() (any, error) {
	c.row.Code = eventRevoke // audit code if the list is refused
	var s trust.SignedRevocations
	b, err := io.ReadAll(http.MaxBytesReader(c.w, c.r.Body, 2*trust.MaxRevocations))
	if err == nil {
		err = strictjson.Decode(b, &s)
	}
	if err != nil {
		return nil, hostapi.Errorf(hostapi.CodeMalformed, "body: %v: want a list as florctl revoke signs it", err)
	}
	var rows []server.Row
	next, changed, err := c.Archive.SetRevocations(c.r.Context(), s, archive.ListTerms{
		Cluster: c.policy.Cluster, Signers: c.policy.Trust.Signers(),
		Record: func(last, next *trust.Revocations) []store.Op {
			rows = RevokedRows(c.row, last, next)
			return server.Ops(rows)
		},
	})
	var refusal *archive.Refusal
	if errors.As(err, &refusal) {
		return nil, hostapi.Errorf(hostapi.CodeMalformed, "%v", err)
	}
	if err != nil {
		return nil, err
	}
	if changed {
		for _, row := range rows {
			row.Log(c.r.Context(), c.Logger)
		}
	}
	return next, nil
}

// RevokedRows returns the audit rows about the changes that operators made between two revocation
// lists, of which last is the earlier. Each row describes one kind of change, such as a revocation,
// and its targets. The other fields of a row are copied from r. If there was no earlier list, last
// is nil.
func RevokedRows(r server.Row, last, next *trust.Revocations) (rows []server.Row) {
	for _, change := range listChanges(last, next) {
		r.Outcome, r.Code, r.Serial = server.Granted, change.event, next.Number
		r.Message = fmt.Sprintf("revocation list %d is offered to all hosts", next.Number)
		r.Detail = map[string]string{"before": describeList(last), "after": describeList(next)}
		if len(change.targets) > 0 {
			r.Message += fmt.Sprintf(": %s %s", change.event, first(change.targets, shownTargets))
			r.Detail["targets"] = first(change.targets, maxTargets)
		}
		rows = append(rows, r)
	}
	return rows
}

func first(names []string, most int) string {
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}

func describeList(l *trust.Revocations) string {
	if l == nil {
		return "none"
	}
	return fmt.Sprintf("list %d with %d entries", l.Number, len(l.Entries)+len(l.Certificates))
}
