package control_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/internal/hostdir"
	"github.com/florete/florete/internal/hostreport"
	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/providers/control"
	"github.com/florete/florete/providers/server"
	"github.com/florete/florete/tests/kit"
)

// report sends a report of ursula, whose secret was rotated this number of times.
func (e *env) report(sequence int64, rotations int) hostapi.Reported {
	e.t.Helper()
	answer, err := e.Client(ursula).Report(e.t.Context(), kit.JSON(map[string]any{
		"sequence": sequence, "needs": []hostreport.Need{{ID: "oidc-wiki", Kind: "oidc", State: hostdir.NeedFulfilled, Rotations: rotations}, {ID: "cert-node", Kind: document.KindCert}},
	}))
	if err != nil {
		e.t.Fatal(err)
	}
	return answer
}

// A rotation that an operator orders is in the answers to reports until one has it.
func TestRotate(t *testing.T) {
	e := start(t)
	order := func(caller spiffe.ID, body string) (int, string) {
		status, b := e.do(caller, e.request("POST", "/v1/rotate", strings.NewReader(body)))
		return status, string(b)
	}
	const body = `{"host":"ursula","need":"oidc-wiki"}`
	if status, b := order(alice, body); status != http.StatusBadRequest || !strings.Contains(b, `host \"ursula\" has not reported to this provider`) {
		t.Errorf("got %d %s", status, b)
	}
	if r := e.report(1, 2); r.Rotate != nil {
		t.Errorf("ordered: %v", r.Rotate)
	}
	for _, bad := range []string{`{"host":"ursula","need":"cert-node"}`, `{"host":"ursula","need":"oidc-vault"}`, `{"host":"ursula"}`, `{}`, ``, `{"host":"ursula","need":"oidc-wiki","x":1}`} {
		if status, b := order(alice, bad); status != http.StatusBadRequest {
			t.Errorf("%s: got %d %s", bad, status, b)
		}
	}
	if status, b := order(bob, body); status != http.StatusForbidden {
		t.Errorf("got %d %s", status, b)
	}
	for range 2 { // the same again is the same rotation
		var o control.Ordered
		if e.answer(alice, "POST", "/v1/rotate", strings.NewReader(body), &o); o.Rotation != 3 || o.Host != "ursula" {
			t.Errorf("got %+v", o)
		}
	}
	for _, want := range []struct {
		sequence            int64
		rotations, rotation int
	}{{2, 2, 3}, {2, 2, 3}, {3, 2, 3}, {4, 3, 0}, {5, 3, 0}} {
		if r := e.report(want.sequence, want.rotations); r.Rotate["oidc-wiki"] != want.rotation {
			t.Errorf("report %d: got %v, want %d", want.sequence, r.Rotate, want.rotation)
		}
	}
	var rows []server.Row
	for _, r := range e.acts() {
		if r.Outcome == server.Granted {
			rows = append(rows, r)
		}
	}
	if len(rows) != 2 || rows[0].Code != "rotate" || rows[0].Need != "oidc-wiki" || rows[0].Detail["host"] != "ursula" ||
		rows[0].Detail["before"] != "rotation 2, ordered 0" || rows[1].Detail["before"] != "rotation 2, ordered 3" || rows[1].Detail["after"] != "rotation 2, ordered 3" {
		t.Errorf("got %+v", rows)
	}
}
