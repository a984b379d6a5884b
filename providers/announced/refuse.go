package announced

import (
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

// Row returns the first fields of the audit row of a request. The caller of Row fills in the others
// when it acts on the request or refuses it.
func (f Refusals) Row(r *http.Request) server.Row {
	caller := From(r.Context())
	row := server.Row{Time: time.Now().UTC(), Caller: caller.String(), Kind: f.Kind}
	if caller.Account == "" {
		row.From = r.RemoteAddr
	}
	return row
}

// Refuse records in the audit log that a request failed, and returns the error to send to the
// caller. If the error is internal, Refuse logs the details and returns an error without them. It
// also sets headers of the answer.
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

// Access refuses a request from a page of another site, and a request whose caller has less access
// than the request needs. The error names the group that a role must have. To read, this is the
// argument group; to write, it is the same name with the suffix "-write".
func Access(r *http.Request, group string, has, want document.Access) error {
	if err := ownPage(r); err != nil {
		return err
	}
	if has == document.AccessWrite || has == want {
		return nil
	}
	may := string(has)
	if may == "" {
		may = "do nothing"
	}
	if want == document.AccessWrite {
		group += spiffe.WriteSuffix
	}
	return hostapi.Errorf(hostapi.CodeNotGranted, "%s %.100q: %s may %s here, want %s: give it a role with group %s",
		r.Method, r.URL.Path, From(r.Context()).ID.Short(), may, want, group)
}

// Operator refuses a request unless its caller is an operator with the access that the request
// needs. An account of this host that can open the state may make all requests.
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
