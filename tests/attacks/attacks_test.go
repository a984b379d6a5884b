package attacks

import (
	"cmp"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/florete/florete/tests/kit/agenttest"
	"github.com/florete/florete/tests/local"
)

// attack is a forbidden action and how it must fail. An attack passes if the action is refused with
// the expected error and the audit log shows the refusal.
type attack struct {
	name string

	// try performs the action. It returns the error with which the action was refused, or nil if
	// the attack succeeded.
	try func(t *testing.T, c *cluster) error

	// refusal is a text that the error must contain.
	refusal string

	// row describes a row that the provider must add to its audit log. Only the fields that are set
	// are compared. If row is zero, no row is expected.
	row local.Decision

	// root says which part of the attack requires root. It is empty if no part does.
	root string
}

// run performs the attacks of a table one after the other, on the cluster that all tables share.
func run(t *testing.T, table []attack) {
	c := start(t)
	for _, a := range table {
		t.Run(strings.ReplaceAll(a.name, " ", "-"), func(t *testing.T) {
			if a.root != "" {
				agenttest.Root(t, a.root)
			}
			began := time.Now()
			err := a.try(t, c)
			switch {
			case err == nil:
				t.Fatal("was not refused")
			case !strings.Contains(err.Error(), a.refusal):
				t.Errorf("was refused, but not as it should be: %v: want %q", err, a.refusal)
			}
			if a.row != (local.Decision{}) {
				c.wantRow(t, began, a.row)
			}
		})
	}
}

// matches reports whether a row of the audit log has the values of all fields that are set in want.
func matches(row, want local.Decision) bool {
	same := func(got, want string) bool { return want == "" || got == want }
	return same(row.Caller, want.Caller) && same(row.Kind, want.Kind) && same(row.Need, want.Need) &&
		same(row.Decision, want.Decision) && (!want.Enrolment || row.Enrolment) && same(row.Code, want.Code) && strings.Contains(row.Message, want.Message)
}

func describe(d local.Decision) string {
	return fmt.Sprintf("%s %s of %s for %s", d.Decision, d.Code, cmp.Or(d.Caller, "anybody"), cmp.Or(d.Need, d.Kind))
}
