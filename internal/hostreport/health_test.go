package hostreport

import (
	"fmt"
	"strings"
	"testing"

	"github.com/florete/florete/internal/hostdir"
)

// TestProblems checks the rule by which all programs decide whether a host is well.
func TestProblems(t *testing.T) {
	need := func(state hostdir.NeedStatus, e *hostdir.NeedError) func(*Report) {
		return func(r *Report) { r.Needs = []Need{{ID: "cert-node", State: state, Error: e}} }
	}
	unit := func(active, text string) func(*Report) {
		return func(r *Report) { r.Units = []Unit{{Name: "x.service", Active: active, Sub: "sub", Text: text}} }
	}
	refused := &hostdir.NeedError{Code: "not-granted", Message: "no grant"}
	for name, c := range map[string]struct {
		change func(*Report)
		want   string // kind, whether it lasts, name, detail
	}{
		"well":              {func(*Report) {}, ""},
		"fulfilled":         {need(hostdir.NeedFulfilled, nil), ""},
		"waiting":           {need(hostdir.NeedWaiting, nil), "need false need cert-node is not fulfilled; need cert-node is waiting"},
		"blocked":           {need(hostdir.NeedBlocked, nil), "need false need cert-node is not fulfilled; need cert-node is blocked"},
		"never requested":   {need("", nil), "need false need cert-node is not fulfilled; need cert-node is "},
		"denied":            {need(hostdir.NeedDenied, refused), "need true need cert-node is not fulfilled; need cert-node is denied: not-granted: no grant"},
		"invalid":           {need(hostdir.NeedInvalid, nil), "need true need cert-node is not fulfilled; need cert-node is invalid"},
		"not restarted":     {need(hostdir.NeedFulfilled, refused), "need false a unit of need cert-node was not restarted; need cert-node is fulfilled: not-granted: no grant"},
		"active":            {unit("active", "3/3 needs fulfilled"), ""},
		"reloading":         {unit("reloading", ""), ""},
		"activating":        {unit("activating", ""), "unit false unit x.service does not run; x.service is activating (sub)"},
		"inactive":          {unit("inactive", ""), "unit false unit x.service does not run; x.service is inactive (sub)"},
		"failed":            {unit("failed", "no socket"), "unit true unit x.service does not run; x.service is failed (no socket)"},
		"waiting for a key": {unit("active", "waiting for a key"), "unit false unit x.service waits; x.service is active (waiting for a key)"},
		"starts, and waits": {unit("activating", "waiting for a key"), "unit false unit x.service does not run; x.service is activating (waiting for a key)"},
		"no forwarder":      {func(r *Report) { r.Forwarder = nil }, "forwarder false its forwarder does not answer; its forwarder does not answer"},
		"no identity":       {func(r *Report) { r.Forwarder.State = "waiting" }, "forwarder false its forwarder is waiting; its forwarder is waiting"},
		"a port":            {func(r *Report) { r.Forwarder.Problems = []string{"port taken"} }, "forwarder false its forwarder: port taken; its forwarder: port taken"},
	} {
		t.Run(name, func(t *testing.T) {
			r := Report{Forwarder: &Forwarder{State: Running}}
			c.change(&r)
			var got []string
			for _, p := range Problems(r) {
				got = append(got, fmt.Sprintf("%s %t %s; %s", p.Kind, p.Lasting, p.Name, p.Detail))
			}
			if strings.Join(got, "\n") != c.want {
				t.Errorf("got  %q\nwant %q", got, c.want)
			}
		})
	}
}
