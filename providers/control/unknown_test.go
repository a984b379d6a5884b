package control_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/internal/unixtime"
	"github.com/florete/florete/nix/operator/revocation"
	"github.com/florete/florete/providers/control"
	"github.com/florete/florete/providers/join"
	"github.com/florete/florete/providers/server"
	"github.com/florete/florete/providers/store"
	"github.com/florete/florete/tests/kit"
)

// TestUnknownOutcome checks acts for which the store does not answer a commit, whether or not the
// commit was made. The operator gets a transient error, the same act is accepted again, and the
// audit log never lists an act as refused that was made.
func TestUnknownOutcome(t *testing.T) {
	for _, c := range []struct {
		name string
		act  func(e *env, n int64) (path, body string)
	}{
		{"publish", func(e *env, n int64) (string, string) {
			return "/v1/publish", e.text(1000+n, fmt.Sprint("note ", n)).String()
		}},
		{"revoke", func(e *env, n int64) (string, string) {
			var targets []revocation.Target // a list drops nothing
			for i := range n {
				targets = append(targets, revocation.Target{ID: kit.ID(fmt.Sprintf("user/u%d", i+1))})
			}
			return "/v1/revocations", string(kit.JSON(kit.Revocations(n, e.key, targets...)))
		}},
		{"token", func(e *env, n int64) (string, string) {
			return "/v1/tokens", string(kit.JSON(join.Token{ID: fmt.Sprintf("%064x", n), Hosts: "elm", Uses: 1, Until: unixtime.Of(time.Now().Add(time.Hour))}))
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := start(t)
			failed := 0
			for n := int64(1); n < 40; n++ {
				nth, seen := int(n+1)/2, 0
				e.Store.Only(func(txn store.Txn) bool { // commits of acts
					for _, op := range txn.Then {
						if strings.HasPrefix(op.Key, "config/") {
							seen++
							return seen == nth
						}
					}
					return false
				})
				made := n%2 == 0
				if made {
					e.Store.Lose(store.ErrUnavailable)
				} else {
					e.Store.Fail(store.ErrUnavailable)
				}
				path, body := c.act(e, n)
				status, answer := e.do(alice, e.request("POST", path, strings.NewReader(body)))
				e.Store.Only(nil)
				e.Store.Fail(nil)
				if status == http.StatusOK {
					if seen < nth { // no commit is left to fail
						break
					}
					continue // the act itself was made
				}
				failed++
				var refusal hostapi.Error
				if err := json.Unmarshal(answer, &refusal); err != nil || refusal.Kind != hostapi.Transient || refusal.Code != hostapi.CodeStore.Name || !strings.Contains(refusal.Message, "is not known") {
					t.Errorf("commit %d, made %t: got %d %s", nth, made, status, answer)
				}
				if status, answer := e.do(alice, e.request("POST", path, strings.NewReader(body))); status != http.StatusOK {
					t.Errorf("commit %d, made %t: the same again: got %d %s", nth, made, status, answer)
				}
			}
			if failed == 0 {
				t.Error("no commit failed")
			}
			for _, r := range e.acts() {
				if r.Outcome != server.Granted && r.Outcome != server.Outcome(hostapi.Transient) {
					t.Errorf("row %+v", r)
				}
			}
			var v control.Versions
			e.answer(alice, "GET", "/v1/versions", nil, &v)
		})
	}
}
