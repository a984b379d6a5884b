package control

import (
	"errors"
	"io"
	"net/http"
	"slices"
	"time"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/internal/strictjson"
	"github.com/florete/florete/providers/advance"
)

// rollout returns the status of the rollout in progress, or of the last rollout.
func (c *call) rollout() (any, error) { return advance.StatusOf(c.r.Context(), c.Archive) }

// changeRollout pauses, resumes or aborts the rollout in progress.
func (c *call) changeRollout() (any, error) {
	act := advance.Act(c.r.PathValue("act"))
	if !slices.Contains(advance.Acts, act) {
		return nil, hostapi.Errorf(hostapi.CodeUnknownMethod, "rollout/%.30s: want one of %q", act, advance.Acts)
	}
	c.row.Code = advance.Code
	state, row, err := advance.Do(c.r.Context(), c.Archive, act, c.row)
	if errors.Is(err, advance.ErrAct) {
		return nil, hostapi.Errorf(hostapi.CodeMismatchInvalid, "rollout/%s: %v", act, err)
	}
	if err == nil && row.Outcome != "" {
		row.Log(c.r.Context(), c.Logger)
	}
	return state, err
}

// Claim is the body of a request of an operator who is about to deploy a host. It asks for a place
// in each of the host's disruption budgets, which limit how many hosts change at the same time.
type Claim struct {
	Seconds int `json:"seconds"` // time after which the claim expires
}

// Claimed is the answer to a request with a Claim.
type Claimed struct {
	Waits string `json:"waits,omitempty"` // reason why the host cannot be changed now; empty if the claim was granted
}

// longestClaim is the longest time for which a host can be claimed. It is longer than one day,
// because florctl deploy waits at most one day for a host.
const longestClaim = 25 * time.Hour

// claim reserves a place in the disruption budgets of a host for the caller, if the budgets permit
// a change of the host now.
func (c *call) claim() (any, error) {
	var of Claim
	b, err := io.ReadAll(http.MaxBytesReader(c.w, c.r.Body, 4<<10))
	if err == nil {
		err = strictjson.Decode(b, &of)
	}
	if err != nil {
		return nil, hostapi.Errorf(hostapi.CodeMalformed, `body: %v: want {"seconds":420}`, err)
	}
	lasts := time.Duration(of.Seconds) * time.Second
	if of.Seconds < 1 || lasts > longestClaim {
		return nil, hostapi.Errorf(hostapi.CodeMalformed, "seconds %d, want 1 to %d", of.Seconds, int(longestClaim.Seconds()))
	}
	var budgets []document.Budget
	if c.policy.Rollout != nil {
		budgets = c.policy.Rollout.Budgets
	}
	c.row.Code = advance.Code
	waits, row, err := advance.Claim(c.r.Context(), c.Archive, budgets, c.r.PathValue("host"), lasts, c.row)
	if err == nil && row.Outcome != "" {
		row.Log(c.r.Context(), c.Logger)
	}
	return Claimed{waits}, err
}

// release ends the caller's claim of a host.
func (c *call) release() (any, error) {
	c.row.Code = advance.Code
	row, err := advance.Release(c.r.Context(), c.Archive, c.r.PathValue("host"), c.row)
	if err == nil && row.Outcome != "" {
		row.Log(c.r.Context(), c.Logger)
	}
	return Claimed{}, err
}
