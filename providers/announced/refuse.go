package announced

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/internal/httpreply"
	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/providers/server"
	"github.com/florete/florete/providers/store"
)

// Refusals writes an audit row for each request that a service refuses.
type Refusals struct {
	Kind   string // kind in the audit rows
	Audit  *server.Audit
	Logger *slog.Logger
}

// Row returns an audit row for a request, with its time, kind, caller and network address. The
// caller of Row sets the outcome and the other fields.
func (f Refusals) Row(r *http.Request) server.Row {
	caller := From(r.Context())
	row := server.Row{Time: time.Now().UTC(), Caller: caller.String(), Kind: f.Kind}
	if caller.Account == "" {
		row.From = r.RemoteAddr
	}
	return row
}

// Refuse writes an audit row for a failed request, and returns the error to send to the client. If
// err is not an *hostapi.Error, the client receives a general error without details, and Refuse
// logs the text of err. Refuse sets the headers Retry-After and Connection, but does not send the
// response.
func (f Refusals) Refuse(w http.ResponseWriter, r *http.Request, row server.Row, err error) *hostapi.Error {
	var refusal *hostapi.Error
	if !errors.As(err, &refusal) {
		if r.Context().Err() == nil {
			f.Logger.Error("a request failed", "error", err, "kind", f.Kind, "path", r.URL.Path, "caller", row.Caller)
		}
		refusal = hostapi.Errorf(hostapi.CodeInternal, "%s %.100q: failed at the provider, whose log has the reason", r.Method, r.URL.Path)
		if errors.Is(err, store.ErrUnavailable) {
			refusal = hostapi.Errorf(hostapi.CodeStore, "%s %.100q: %s", r.Method, r.URL.Path, server.Unavailable(err))
		}
		if r.Method != http.MethodGet {
			refusal.Message += "; whether this was done is not known: repeat the same command, which does nothing twice"
		}
	}
	if err := f.Audit.Write(r.Context(), row.Refuse(refusal)); err != nil {
		f.Logger.Error("a refusal is in this log alone", "error", err, "caller", row.Caller, "refused", refusal.Message)
	}
	if refusal.RetryAfter > 0 {
		w.Header().Set("Retry-After", fmt.Sprint(refusal.RetryAfter))
	}
	// The rest of the request's body is not read.
	w.Header().Set("Connection", "close")
	return refusal
}

// Access returns an error if a request comes from a web page of another site, or if the caller has
// less access than the request needs. The error tells an operator which group a role of the caller
// must contain: the given group for reading, or its name with the suffix "-write" for writing.
func Access(r *http.Request, group string, has, want document.Access) error {
	if err := ownPage(r); err != nil {
		return err
	}
	if has == document.AccessWrite || has == want {
		return nil
	}
	may := string(has)
	may = cmp.Or(may, "do nothing")
	if want == document.AccessWrite {
		group += spiffe.WriteSuffix
	}
	return hostapi.Errorf(hostapi.CodeNotGranted, "%s %.100q: %s may %s here, want %s: give it a role with group %s",
		r.Method, r.URL.Path, From(r.Context()).ID.Short(), may, want, group)
}

// Operator returns an error unless the policy lets the caller of a request act as an operator with
// the wanted access. A caller with Caller.Account set may make all requests.
func Operator(r *http.Request, p document.Policy, want document.Access) error {
	if From(r.Context()).Account != "" {
		return nil
	}
	return Access(r, spiffe.ControlGroup, p.Operators.Access(From(r.Context()).ID, time.Now()), want)
}

// ownPage refuses a browser's request from a page of another site.
func ownPage(r *http.Request) error {
	is := From(r.Context()).Name
	if _, err := httpreply.OwnPage(r, func(name string) bool { return strings.EqualFold(name, is) }, is); err != nil {
		return hostapi.Errorf(hostapi.CodeUntrusted, "%s", err)
	}
	return nil
}

// Reply writes v to the caller as JSON.
func Reply(w http.ResponseWriter, status int, v any) {
	w.Header().Set(document.HeaderFormat, document.NewestFormat.String())
	httpreply.JSON(w, status, v)
}
