package control

import (
	"net/http"
	"time"

	"github.com/florete/florete"
	"github.com/florete/florete/providers/announced"
	wire "github.com/florete/florete/providers/api"
	"github.com/florete/florete/providers/server"
)

// call is one request of an operator.
type call struct {
	*api
	w      http.ResponseWriter
	r      *http.Request
	policy florete.Policy
	row    server.Row // of an act, or of a refusal
}

// endpoint is a method and path, who may call it, and what answers.
type endpoint struct {
	method, path string
	access       florete.Access
	// answer returns what is sent, nil where it sent that itself.
	answer func(*call) (any, error)
}

var endpoints = []endpoint{
	{"GET", "/v1/versions", florete.AccessRead, (*call).versions},
	{"GET", "/v1/versions/{serial}", florete.AccessRead, (*call).export},
	{"POST", "/v1/publish", florete.AccessWrite, (*call).publish},
	{"POST", "/v1/rollback/{serial}", florete.AccessWrite, (*call).rollback},
	{"GET", "/v1/rollout", florete.AccessRead, (*call).rollout},
	{"POST", "/v1/rollout/{act}", florete.AccessWrite, (*call).changeRollout},
	{"POST", "/v1/rotate", florete.AccessWrite, (*call).rotate},
	{"GET", "/v1/revocations", florete.AccessRead, (*call).revocations},
	{"POST", "/v1/revocations", florete.AccessWrite, (*call).setRevocations},
	{"GET", "/v1/tokens", florete.AccessRead, (*call).tokens},
	{"POST", "/v1/tokens", florete.AccessWrite, (*call).createToken},
	{"POST", "/v1/tokens/{id}/revoke", florete.AccessWrite, (*call).revokeToken},
	{"GET", "/v1/joins", florete.AccessRead, (*call).joins},
	{"POST", "/v1/joins/{host}", florete.AccessWrite, (*call).decideJoin},
	{"GET", "/v1/files", florete.AccessRead, relayed("file")},
	{"POST", "/v1/files", florete.AccessWrite, relayed("file")},
	{"GET", "/v1/secrets", florete.AccessRead, relayed("secret")},
	{"GET", "/v1/tls/root", florete.AccessRead, relayed("tls")},
	{"GET", "/v1/tenants", florete.AccessRead, relayed("token")},
	{"GET", "/v1/tenants/{tenant}/rules", florete.AccessRead, relayed("token")},
	{"POST", "/v1/tenants/{tenant}/policies", florete.AccessWrite, relayed("token")},
	{"POST", "/v1/tenants/{tenant}/policies/remove", florete.AccessWrite, relayed("token")},
	{"POST", "/v1/tenants/{tenant}/groupings", florete.AccessWrite, relayed("token")},
	{"POST", "/v1/tenants/{tenant}/groupings/remove", florete.AccessWrite, relayed("token")},
	{"POST", "/v1/tenants/{tenant}/delete", florete.AccessWrite, relayed("token")},
	{"POST", "/v1/issued", florete.AccessWrite, (*call).issued},
	{"GET", "/v1/hosts", florete.AccessRead, (*call).hosts},
	{"GET", "/v1/needs", florete.AccessRead, (*call).needs},
	{"GET", "/v1/audit", florete.AccessRead, (*call).audit},
	{"GET", "/v1/audit/log", florete.AccessRead, (*call).auditHead},
	{"GET", "/v1/audit/log/rows", florete.AccessRead, (*call).auditRows},
	{"GET", "/v1/audit/log/proof", florete.AccessRead, (*call).auditProof},
	{"GET", "/v1/openapi.json", florete.AccessRead, (*call).openAPI},
}

func (a *api) routes() http.Handler {
	mux := http.NewServeMux()
	for _, e := range endpoints {
		mux.HandleFunc(e.method+" "+e.path, func(w http.ResponseWriter, r *http.Request) { a.serve(w, r, e) })
	}
	unknown := endpoint{access: florete.AccessRead, answer: func(c *call) (any, error) {
		return nil, wire.Errorf(wire.Invalid, wire.CodeUnknownMethod, "%s %.100q: no such endpoint: /v1/openapi.json has them", c.r.Method, c.r.URL.Path)
	}}
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) { a.serve(w, r, unknown) })
	return mux
}

// serve answers a request, or refuses it and records that.
func (a *api) serve(w http.ResponseWriter, r *http.Request, e endpoint) {
	c := &call{api: a, w: w, r: r, policy: a.Policies.Newest(), row: a.refusals.Row(r)}
	answer, err := c.decide(announced.From(r.Context()), e)
	if err == nil && answer == nil {
		return
	}
	status := http.StatusOK
	if err != nil {
		refusal := a.refusals.Refuse(w, r, c.row, err)
		status, answer = refusal.Status(), refusal
	}
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(patience))
	announced.Reply(w, status, answer)
}

func (c *call) decide(caller announced.Caller, e endpoint) (any, error) {
	if err := announced.Operator(c.r, c.policy, e.access); err != nil {
		return nil, err
	}
	free, ok := c.callers.Acquire(caller.ID.String())
	if !ok {
		return nil, wire.Errorf(wire.Transient, wire.CodeBusy, "%d requests of %s are being answered: request again later", c.callers.Max(), caller.ID.Short()).After(time.Second)
	}
	defer free()
	select {
	case c.slots <- struct{}{}:
		defer func() { <-c.slots }()
	default:
		return nil, wire.Errorf(wire.Transient, wire.CodeBusy, "%d requests are being answered: request again later", cap(c.slots)).After(time.Second)
	}
	return e.answer(c)
}
