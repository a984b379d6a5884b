package control

import (
	_ "embed"
	"encoding/json"
	"net/http"
	"time"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/providers/announced"
	"github.com/florete/florete/providers/server"
)

// call is one request of an operator to the API.
type call struct {
	*api
	w      http.ResponseWriter
	r      *http.Request
	policy document.Policy
	row    server.Row // audit row of an act or a refusal
}

// endpoint is an HTTP method and path, the handler for them, and the access that a caller needs.
type endpoint struct {
	method, path string
	access       document.Access
	// answer carries out the request and returns the answer, or nil if it has already sent an
	// answer.
	answer func(*call) (any, error)
}

var endpoints = []endpoint{
	{"GET", "/v1/versions", document.AccessRead, (*call).versions},
	{"GET", "/v1/versions/{serial}", document.AccessRead, (*call).export},
	{"POST", "/v1/publish", document.AccessWrite, (*call).publish},
	{"POST", "/v1/rollback/{serial}", document.AccessWrite, (*call).rollback},
	{"GET", "/v1/rollout", document.AccessRead, (*call).rollout},
	{"POST", "/v1/rollout/{act}", document.AccessWrite, (*call).changeRollout},
	{"POST", "/v1/claims/{host}", document.AccessWrite, (*call).claim},
	{"POST", "/v1/claims/{host}/release", document.AccessWrite, (*call).release},
	{"POST", "/v1/rotate", document.AccessWrite, (*call).rotate},
	{"GET", "/v1/revocations", document.AccessRead, (*call).revocations},
	{"POST", "/v1/revocations", document.AccessWrite, (*call).setRevocations},
	{"GET", "/v1/access", document.AccessRead, (*call).accessRequests},
	{"POST", "/v1/access/requests", document.AccessRead, (*call).requestAccess},
	{"POST", "/v1/access/requests/{id}/drop", document.AccessRead, (*call).dropAccessRequest},
	{"POST", "/v1/access/grants", document.AccessRead, (*call).putGrant},
	{"GET", "/v1/tokens", document.AccessRead, (*call).tokens},
	{"POST", "/v1/tokens", document.AccessWrite, (*call).createToken},
	{"POST", "/v1/tokens/{id}/revoke", document.AccessWrite, (*call).revokeToken},
	{"GET", "/v1/joins", document.AccessRead, (*call).joins},
	{"POST", "/v1/joins/{host}", document.AccessWrite, (*call).decideJoin},
	{"GET", "/v1/files", document.AccessRead, relayed("file")},
	{"POST", "/v1/files", document.AccessWrite, relayed("file")},
	{"GET", "/v1/secrets", document.AccessRead, relayed("secret")},
	{"GET", "/v1/tls/root", document.AccessRead, relayed("tls")},
	{"GET", "/v1/tenants", document.AccessRead, relayed("token")},
	{"GET", "/v1/tenants/{tenant}/rules", document.AccessRead, relayed("token")},
	{"POST", "/v1/tenants/{tenant}/policies", document.AccessWrite, relayed("token")},
	{"POST", "/v1/tenants/{tenant}/policies/remove", document.AccessWrite, relayed("token")},
	{"POST", "/v1/tenants/{tenant}/groupings", document.AccessWrite, relayed("token")},
	{"POST", "/v1/tenants/{tenant}/groupings/remove", document.AccessWrite, relayed("token")},
	{"POST", "/v1/tenants/{tenant}/delete", document.AccessWrite, relayed("token")},
	{"POST", "/v1/issued", document.AccessWrite, (*call).issued},
	{"GET", "/v1/hosts", document.AccessRead, (*call).hosts},
	{"GET", "/v1/needs", document.AccessRead, (*call).needs},
	{"GET", "/v1/audit", document.AccessRead, (*call).audit},
	{"GET", "/v1/audit/logs", document.AccessRead, (*call).auditLogs},
	{"GET", "/v1/audit/log", document.AccessRead, (*call).auditHead},
	{"GET", "/v1/audit/log/rows", document.AccessRead, (*call).auditRows},
	{"GET", "/v1/audit/log/proof", document.AccessRead, (*call).auditProof},
	{"GET", "/v1/openapi.json", document.AccessRead, (*call).openAPI},
}

func (a *api) routes() http.Handler {
	mux := http.NewServeMux()
	for _, e := range endpoints {
		mux.HandleFunc(e.method+" "+e.path, func(w http.ResponseWriter, r *http.Request) { a.serve(w, r, e) })
	}
	unknown := endpoint{access: document.AccessRead, answer: func(c *call) (any, error) {
		return nil, hostapi.Errorf(hostapi.CodeUnknownMethod, "%s %.100q: no such endpoint: /v1/openapi.json has them", c.r.Method, c.r.URL.Path)
	}}
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) { a.serve(w, r, unknown) })
	return mux
}

// serve answers a request, or refuses it and records the refusal in the audit log.
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
	free, ok := c.callers.Acquire(caller.String())
	if !ok {
		return nil, hostapi.Errorf(hostapi.CodeBusy, "%d requests of %s are being answered: request again later", c.callers.Max(), caller.ID.Short()).After(time.Second)
	}
	defer free()
	select {
	case c.slots <- struct{}{}:
		defer func() { <-c.slots }()
	default:
		return nil, hostapi.Errorf(hostapi.CodeBusy, "%d requests are being answered: request again later", cap(c.slots)).After(time.Second)
	}
	return e.answer(c)
}

//go:embed openapi.json
var openAPI []byte

func (c *call) openAPI() (any, error) { return json.RawMessage(openAPI), nil }
