package control

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"time"

	"github.com/florete/florete/internal/accessgrant"
	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/internal/strictjson"
	"github.com/florete/florete/internal/terminal"
	"github.com/florete/florete/internal/unixtime"
	"github.com/florete/florete/providers/announced"
	"github.com/florete/florete/providers/archive"
	"github.com/florete/florete/providers/server"
	"github.com/florete/florete/providers/store"
)

// Codes of audit rows about requests for roles and access grants.
const (
	CodeAccessRequest = "access-request"
	CodeAccessDrop    = "access-drop"
	CodeAccessGrant   = "access-grant"
	CodeAccessEnd     = "access-end"
)

// AccessRequest is a user's request for a role, as the user sends it. The provider adds who sent it.
type AccessRequest struct {
	ID      string `json:"id"` // 32 lower-case hex digits, chosen at random
	Role    string `json:"role"`
	Seconds int64  `json:"seconds"`
	Reason  string `json:"reason"`
}

func (c *call) accessRequests() (any, error) { return c.Archive.Access(c.r.Context(), time.Now()) }

// requestAccess records the caller's request for a role. The request gives nothing by itself.
func (c *call) requestAccess() (any, error) {
	c.row.Code = CodeAccessRequest
	var q AccessRequest
	if err := c.body(&q); err != nil {
		return nil, err
	}
	caller := announced.From(c.r.Context())
	if caller.ID.Kind() != spiffe.KindUser {
		return nil, hostapi.Errorf(hostapi.CodeMismatchInvalid, "%s requests a role: want a user, who runs florctl access request", caller)
	}
	r := archive.AccessRequest{
		ID: q.ID, Role: q.Role, User: caller.ID, Seconds: q.Seconds, Reason: terminal.Text(q.Reason), Time: unixtime.Of(time.Now().Truncate(time.Second)),
	}
	return r, c.accessAct(fmt.Sprintf("%s requests role %s for %s: %s", r.User.Short(), terminal.Text(r.Role), time.Duration(r.Seconds)*time.Second, r.Reason),
		map[string]string{"id": terminal.Text(r.ID), "role": terminal.Text(r.Role), "reason": r.Reason},
		func(record func() []store.Op) error {
			return c.Archive.RequestAccess(c.r.Context(), r, c.policy, record)
		})
}

// dropAccessRequest forgets a request that nobody has approved. The user who made it, and those who
// may approve it, may do so.
func (c *call) dropAccessRequest() (any, error) {
	c.row.Code = CodeAccessDrop
	id, caller := c.r.PathValue("id"), announced.From(c.r.Context())
	all, err := c.Archive.Access(c.r.Context(), time.Now())
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(all.Requests, func(r archive.AccessRequest) bool { return r.ID == id })
	if i < 0 {
		return nil, hostapi.Errorf(hostapi.CodeMismatchInvalid, "request %.64q is unknown: florctl access list", id)
	}
	r := all.Requests[i]
	approves := slices.ContainsFunc(c.policy.Requests[r.Role].Approvers, func(a document.Approver) bool { return a.ID == caller.ID })
	if r.User != caller.ID && !approves && caller.Account == "" {
		return nil, hostapi.Errorf(hostapi.CodeMismatchInvalid, "request %s is that of %s: they and approvers of role %s may drop it", id, r.User.Short(), r.Role)
	}
	return r, c.accessAct(fmt.Sprintf("the request of %s for role %s is dropped", r.User.Short(), r.Role), map[string]string{"id": r.ID, "role": r.Role},
		func(record func() []store.Op) error {
			return c.Archive.DropRequest(c.r.Context(), id, time.Now(), record)
		})
}

// putGrant offers hosts an access grant, or a statement that ends one. The signature counts, and not
// the caller.
func (c *call) putGrant() (any, error) {
	c.row.Code = CodeAccessGrant
	var s accessgrant.Signed
	if err := c.body(&s); err != nil {
		return nil, err
	}
	g, err := s.Open()
	if err != nil {
		return nil, hostapi.Errorf(hostapi.CodeMalformed, "%v", err)
	}
	message := fmt.Sprintf("%s gives role %s to %s until %s", g.By.Short(), terminal.Text(g.Role), g.User.Short(), g.Until.UTC().Format(time.RFC3339))
	if g.Ends {
		c.row.Code = CodeAccessEnd
		message = fmt.Sprintf("%s ends the grant of role %s to %s", g.By.Short(), terminal.Text(g.Role), g.User.Short())
	}
	return g, c.accessAct(message, map[string]string{"id": g.ID, "role": terminal.Text(g.Role), "user": g.User.String(), "approver": g.By.String()},
		func(record func() []store.Op) error {
			_, err := c.Archive.PutGrant(c.r.Context(), s, c.policy, time.Now(), record)
			return err
		})
}

// accessAct carries out an act of a user, with an audit row in the same transaction.
func (c *call) accessAct(message string, detail map[string]string, do func(record func() []store.Op) error) error {
	row := c.row
	row.Outcome, row.Message, row.Detail = server.Granted, message, detail
	changed := false
	err := do(func() []store.Op { changed = true; return []store.Op{row.Op()} })
	var refusal *archive.Refusal
	if errors.As(err, &refusal) {
		return hostapi.Errorf(hostapi.CodeMismatchInvalid, "%v", err)
	}
	if err == nil && changed {
		row.Log(c.r.Context(), c.Logger)
	}
	return err
}

// body decodes the body of a request.
func (c *call) body(v any) error {
	b, err := io.ReadAll(http.MaxBytesReader(c.w, c.r.Body, 16<<10))
	if err == nil {
		err = strictjson.Decode(b, v)
	}
	if err != nil {
		return hostapi.Errorf(hostapi.CodeMalformed, "body: %v: /v1/openapi.json has its form", err)
	}
	return nil
}
