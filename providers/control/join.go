package control

import (
	"errors"
	"io"
	"net/http"

	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/internal/strictjson"
	"github.com/florete/florete/internal/trust"
	"github.com/florete/florete/providers/join"
	"github.com/florete/florete/providers/store"
)

// Tokens lists all join tokens that the provider has recorded.
type Tokens struct {
	Tokens []join.Token `json:"tokens"`
}

// Joins lists the last join request of each host.
type Joins struct {
	Joins []join.Request `json:"joins"`
}

// Decision is an operator's answer to a device that asks to become a host of the cluster. With an
// admission, which the operator has signed, it approves the request. Without one, it rejects the
// request.
type Decision struct {
	Admission *trust.SignedAdmission `json:"admission,omitempty"`
}

func (c *call) tokens() (any, error) {
	all, err := join.Tokens(c.r.Context(), c.Archive.Store)
	return Tokens{all}, err
}

func (c *call) joins() (any, error) {
	offered, err := c.Archive.Revocations(c.r.Context())
	var list *trust.Revocations
	if err == nil && offered.Number > 0 {
		list, err = offered.Signed.Open()
	}
	if err != nil {
		return nil, err
	}
	all, err := join.Requests(c.r.Context(), c.Archive.Store, c.policy, list)
	return Joins{all}, err
}

func (c *call) createToken() (any, error) {
	c.row.Code = join.CodeToken
	var t join.Token
	return act(c, &t, func(o *join.Operator) (join.Token, error) { return o.Create(c.r.Context(), t) })
}

func (c *call) revokeToken() (any, error) {
	c.row.Code = join.CodeTokenRevoke
	return act(c, nil, func(o *join.Operator) (join.Token, error) { return o.Revoke(c.r.Context(), c.r.PathValue("id")) })
}

func (c *call) decideJoin() (any, error) {
	c.row.Code = join.CodeReject
	var d Decision
	return act(c, &d, func(o *join.Operator) (join.Request, error) {
		if d.Admission != nil {
			c.row.Code = join.CodeApprove
		}
		return o.Decide(c.r.Context(), c.r.PathValue("host"), d.Admission)
	})
}

func (c *call) issued() (any, error) {
	c.row.Code = join.CodeIssue
	var i join.Issued
	return act(c, &i, func(o *join.Operator) (join.Issued, error) { return o.Issued(c.r.Context(), i) })
}

// act decodes the body of a request, if there is one, and carries out an operator's act. If the
// state has changed meanwhile, act tries again.
func act[V any](c *call, body any, do func(*join.Operator) (V, error)) (any, error) {
	if body != nil {
		b, err := io.ReadAll(http.MaxBytesReader(c.w, c.r.Body, 16<<10))
		if err == nil {
			err = strictjson.Decode(b, body)
		}
		if err != nil {
			return nil, hostapi.Errorf(hostapi.CodeMalformed, "body: %v: /v1/openapi.json has its form", err)
		}
	}
	var v V
	var o join.Operator
	err := store.Retry(c.r.Context(), func() (err error) {
		o = join.Operator{Store: c.Archive.Store, Policy: c.policy, Row: c.row}
		v, err = do(&o)
		return err
	})
	switch {
	case errors.Is(err, join.ErrAct):
		return nil, hostapi.Errorf(hostapi.CodeMismatchInvalid, "%v", err)
	case err != nil:
		return nil, err
	}
	if c.row = o.Row; c.row.Outcome != "" {
		c.row.Log(c.r.Context(), c.Logger)
	}
	return v, nil
}
