package server_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/florete/florete/providers/archive"
	"github.com/florete/florete/providers/distribution"
	"github.com/florete/florete/providers/server"
	"github.com/florete/florete/tests/kit"
	"github.com/florete/florete/tests/kit/providertest"
)

// changes waits until there are n audit rows about changes of what is in force, and returns them.
func changes(t *testing.T, e *providertest.Env, n int) (rows []server.Row) {
	t.Helper()
	kit.Eventually(t, fmt.Sprintf("%d rows about changes", n), func() bool {
		rows = nil
		for _, r := range e.Rows() {
			if r.Outcome == server.Changed && r.Caller == "" { // leaves out rows about the provider's own SVID
				rows = append(rows, r)
			}
		}
		return len(rows) >= n
	})
	if len(rows) != n {
		t.Fatalf("%d rows about changes, want %d: %+v", len(rows), n, rows)
	}
	return rows
}

// TestInForce checks that a new policy, an older policy and a new publication each have one audit
// row, even if they changed while no process ran.
func TestInForce(t *testing.T) {
	e := providertest.NewEnv(t, "ursula")
	e.Runs("config", struct{}{}, func(e *providertest.Env) server.AnyKind {
		return distribution.New(archive.Archive{Store: e.Store}).Kind()
	})
	e.Start()
	rows := changes(t, e, 1) // nothing is published yet
	if roots := strings.Join(e.CA.Roots().Fingerprints(), " "); rows[0].Detail["roots"] != roots || roots == "" {
		t.Errorf("%+v, want the roots %s", rows[0], roots)
	}

	last := func(n int, kind, code string, serial int64, says string) {
		t.Helper()
		rows = changes(t, e, n)
		r := rows[n-1]
		if r.Kind != kind || r.Code != code || r.Serial != serial || !strings.Contains(r.Message, says) {
			t.Errorf("got %+v, want kind %s, code %s, serial %d, …%s…", r, kind, code, serial, says)
		}
	}
	e.Publish(providertest.Serial + 5)
	last(2, "policy", server.CodeInForce, 1005, "the policy of serial 1005 came into force, before it the policy of serial 1000")
	e.Stop()
	e.Publish(providertest.Serial + 1)
	e.Start()
	last(3, "policy", server.CodeRollback, 1001, "before it the policy of serial 1005")

	key := kit.SigningKey("demo-1")
	for i, serial := range []int64{7, 9} {
		providertest.Import(t, e.Store, key, providertest.Tree(key, serial, "", "ursula"))
		last(4+i, "config", server.CodeInForce, serial, fmt.Sprintf("the publication of serial %d came into force", serial))
	}

	e.Restart()
	changes(t, e, 5)
}

func TestIssuingInForce(t *testing.T) {
	e := providertest.NewEnv(t, "ursula")
	e.Start()
	changes(t, e, 2)
	e.Stop()
	e.CA = e.CA.Beside()
	e.Start()
	r := changes(t, e, 3)[2]
	if r.Kind != "cert" || r.Code != server.CodeInForce || r.Serial != 0 || r.Detail["until"] == "" || !strings.Contains(r.Message, "the issuing certificate ") || !strings.Contains(r.Message, ", before it the issuing certificate ") {
		t.Errorf("%+v", r)
	}
	e.Restart()
	changes(t, e, 3)
}

// TestInForceOnABadDisk checks that a row that could not be written is written later.
func TestInForceOnABadDisk(t *testing.T) {
	e := providertest.NewEnv(t, "ursula")
	e.Start()
	changes(t, e, 2)
	e.Store.Only(nil)
	e.Store.Fail(errors.New("disk full"))
	e.Publish(providertest.Serial + 1)
	changes(t, e, 3)
}
