package control

import (
	"errors"
	"slices"

	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/providers/advance"
)

// rollout returns the status of the rollout in progress, or of the last one.
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
