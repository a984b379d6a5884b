// Package advance moves the rollout of a config provider forward. It reads the reports of hosts,
// and writes each step of the rollout, together with an audit row, in one transaction. Operators
// pause, resume and abort a rollout through this package.
package advance

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostreport"
	"github.com/florete/florete/internal/journal"
	"github.com/florete/florete/internal/unixtime"
	"github.com/florete/florete/providers/archive"
	"github.com/florete/florete/providers/rollout"
	"github.com/florete/florete/providers/server"
	"github.com/florete/florete/providers/store"
)

// Code is the audit code of rows about rollouts.
const Code = "rollout"

// A Runner carries out rollouts. A rollout gives hosts a new version of their documents in several
// steps, and the Runner takes each step when it is due.
type Runner struct {
	Archive archive.Archive
	Kind    string // kind in the audit rows
	Logger  *slog.Logger

	hosts []rollout.Host // of the rollout that began at a time
	of    unixtime.Time
}

// every is the interval between two steps of a rollout. If a step takes long, the runner then
// pauses for the duration of the step multiplied by idle.
const (
	every = 2 * time.Second
	idle  = 20
)

// Run carries out rollouts until ctx ends. If a step fails, Run logs the error and tries the step
// again. While no rollout is in progress, Run waits for the next one.
func (r *Runner) Run(ctx context.Context) {
	var failed journal.Once
	for rest := every; ; {
		select {
		case <-ctx.Done():
			return
		case <-time.After(rest):
		}
		began := time.Now()
		err := r.Step(ctx, began)
		if ctx.Err() == nil && failed.News(err) {
			r.Logger.Error("the rollout cannot go on", "error", err)
		}
		rest = max(every, idle*time.Since(began))
	}
}

// Step advances the rollout by one step, if one is in progress.
func (r *Runner) Step(ctx context.Context, now time.Time) error {
	at, err := r.Archive.Rollout(ctx)
	if err != nil || at.Status != rollout.Active && at.Status != rollout.Returning {
		return err
	}
	if r.of != at.Began {
		if r.hosts, err = r.Archive.Waited(ctx, at); err != nil {
			return err
		}
		r.of = at.Began
	}
	read := reader{r.Archive, ctx, nil}
	next := at.Step(now, r.hosts, read.report)
	if read.failed != nil {
		return read.failed
	}
	if same(at.State, next) {
		return nil
	}
	var ops []store.Op
	row, news := r.row(at.State, next, now)
	if news {
		ops = append(ops, row.Op())
	}
	err = r.Archive.SetRollout(ctx, at, next, ops...)
	if errors.Is(err, store.ErrConflict) { // an operator, or another provider
		return nil
	}
	if err == nil && news {
		row.Log(ctx, r.Logger)
	}
	return err
}

func same(a, b rollout.State) bool {
	was, err := json.Marshal(a)
	is, err2 := json.Marshal(b)
	return err == nil && err2 == nil && string(was) == string(is)
}

// row returns the audit row of a step. Its first two arguments are the states of the rollout before
// and after the step. The second result is true if the step ended the rollout or changed the
// documents that a host is offered.
func (r *Runner) row(was, is rollout.State, now time.Time) (row server.Row, news bool) {
	row = server.Row{Time: now.UTC(), Kind: r.Kind, Outcome: server.Changed, Code: Code, Serial: is.Serial, Message: Describe(is),
		Detail: map[string]string{"before": Describe(was), "after": Describe(is)}}
	if was.Status != rollout.Returning && (is.Status == rollout.Stopped || is.Ends == rollout.Stopped) {
		row.Outcome = server.Alarmed
	}
	return row, was.Status != is.Status || !was.Since.Equal(is.Since.Time)
}

// Describe returns a one-line description of a rollout.
func Describe(s rollout.State) string {
	text := fmt.Sprintf("serial %d: %s, wave %d of %d", s.Serial, s.Status, s.Wave, s.Waves)
	switch {
	case s.AtWork() && s.Wave == 0:
		text = fmt.Sprintf("serial %d: %s, before the first of %d waves provider hosts receive their policies", s.Serial, s.Status, s.Waves)
	case s.Status == rollout.Stopped, s.Status == rollout.Aborted:
		text += fmt.Sprintf(", hosts are offered the documents of serial %d again", s.Former)
	case s.Status == rollout.Returning:
		text += fmt.Sprintf(", hosts are offered the documents of serial %d again as budgets permit", s.Former)
	case s.AtWork() && s.Closing:
		text += ", provider hosts receive their policies as budgets permit"
	}
	if s.Reason != "" {
		text += ": " + s.Reason
	}
	return text
}

// reader reads reports of hosts until a report cannot be read.
type reader struct {
	archive archive.Archive
	ctx     context.Context
	failed  error
}

func (r *reader) report(host string) (report hostreport.Kept) {
	if _, err := store.Load(r.ctx, r.archive, server.ReportPrefix+host, &report); err != nil {
		r.failed = err
	}
	return report
}

// Before returns a function for the field Before of archive.Terms. When a rollout begins, that
// function returns the problems that hosts in the plan already have, according to their last
// reports. Hosts without problems are left out.
func Before(a archive.Archive) func(context.Context, document.Rollout, time.Time) (map[string]rollout.Problems, error) {
	return func(ctx context.Context, plan document.Rollout, now time.Time) (map[string]rollout.Problems, error) {
		read := reader{a, ctx, nil}
		all := map[string]rollout.Problems{}
		for _, wave := range plan.Waves {
			for _, host := range wave {
				if p := rollout.ProblemsOf(read.report(host), time.Duration(plan.Within)*time.Second, now); len(p) > 0 {
					all[host] = p
				}
			}
		}
		return all, read.failed
	}
}

// An Act is a command of an operator to the rollout in progress, such as to pause it.
type Act string

// These are all acts of operators on a rollout.
const (
	Pause  Act = "pause"
	Resume Act = "resume"
	Abort  Act = "abort"

	// AbortBeyondBudget aborts the rollout and offers the former documents to all hosts at once,
	// even beyond their disruption budgets.
	AbortBeyondBudget Act = "abort-beyond-budget"
)

// Acts lists all acts that an operator can request.
var Acts = []Act{Pause, Resume, Abort, AbortBeyondBudget}

// ErrAct is the error of an act that the current state of the rollout does not permit.
var ErrAct = errors.New("the rollout cannot be changed")

// Do carries out an operator's command to the rollout in progress, and stores the audit row in the
// same transaction. It returns the new state of the rollout and the stored audit row. If the
// rollout is already in the requested state, Do changes nothing and returns no error. If the state
// of the rollout does not permit the command, the error wraps ErrAct.
func Do(ctx context.Context, a archive.Archive, act Act, row server.Row) (now rollout.State, _ server.Row, err error) {
	err = store.Retry(ctx, func() error {
		at, err := a.Rollout(ctx)
		now = at.State
		if err != nil || act.done(at.State) {
			return err
		}
		next, err := act.on(at.State, row)
		if err != nil {
			return err
		}
		now = next
		row.Outcome, row.Code, row.Serial, row.Message = server.Granted, Code, at.Serial, Describe(next)
		row.Detail = map[string]string{"act": string(act), "before": Describe(at.State), "after": Describe(next)}
		return a.SetRollout(ctx, at, next, row.Op())
	})
	return now, row, err
}

// done reports whether the rollout is already in the state to which the act leads.
func (act Act) done(s rollout.State) bool {
	switch act {
	case Pause:
		return s.Status == rollout.Paused
	case Resume:
		return s.Status == rollout.Active
	case Abort:
		return s.Status == rollout.Aborted || s.Status == rollout.Returning
	}
	return s.Status == rollout.Aborted
}

// callerName returns the name of a row's caller, without the trust domain.
func callerName(row server.Row) string {
	by := row.Caller
	if _, name, ok := strings.Cut(by, "://"); ok {
		_, by, _ = strings.Cut(name, "/")
	}
	return by
}

func (act Act) on(s rollout.State, row server.Row) (rollout.State, error) {
	by := callerName(row)
	switch {
	case !s.AtWork() && s.Serial == 0:
		return s, fmt.Errorf("%w: no version has been rolled out", ErrAct)
	case !s.AtWork():
		return s, fmt.Errorf("%w: that of serial %d has ended, %s", ErrAct, s.Serial, s.Status)
	case act == Pause && s.Status == rollout.Active:
		return s.Pause("by " + by), nil
	case act == Resume && s.Status == rollout.Paused:
		return s.Resume(row.Time), nil
	case act == Abort:
		return s.Stop(rollout.Aborted, "by "+by, row.Time), nil
	case act == AbortBeyondBudget:
		return s.End(rollout.Aborted, "by "+by+", beyond the budget", row.Time), nil
	}
	return s, fmt.Errorf("%w: that of serial %d is %s: want pause, resume where it is paused, or abort", ErrAct, s.Serial, s.Status)
}

// Claim lets an operator deploy a host that is in disruption budgets. A disruption budget limits
// how many of its hosts change at the same time, and Claim reserves a place for the host in each.
// The reservation ends after the given duration, or when Release is called. If a budget does not
// permit a change of the host now, Claim reserves nothing and returns the reason.
func Claim(ctx context.Context, a archive.Archive, budgets []document.Budget, host string, lasts time.Duration, row server.Row) (waits string, _ server.Row, err error) {
	by := callerName(row)
	claim := rollout.Claim{By: by, Until: unixtime.Of(row.Time.Add(lasts))}
	err = claims(ctx, a, &row, "claim", "host "+host+" is being deployed by "+by, func(at archive.Rollout, hosts []rollout.Host, read *reader) (next rollout.State) {
		next, waits = at.Claim(host, claim, budgets, row.Time, hosts, read.report)
		return next
	})
	return waits, row, err
}

// Release ends the reservation that Claim made for a host.
func Release(ctx context.Context, a archive.Archive, host string, row server.Row) (_ server.Row, err error) {
	err = claims(ctx, a, &row, "release", "host "+host+" is no longer being deployed", func(at archive.Rollout, _ []rollout.Host, _ *reader) rollout.State {
		return at.Release(host, row.Time)
	})
	return row, err
}

// claims changes the claims of the archive's rollout by calling a function. If the function changes
// the state, claims writes the audit row in the same transaction.
func claims(ctx context.Context, a archive.Archive, row *server.Row, act, message string, change func(archive.Rollout, []rollout.Host, *reader) rollout.State) error {
	return store.Retry(ctx, func() error {
		at, err := a.Rollout(ctx)
		if err != nil {
			return err
		}
		var hosts []rollout.Host
		if at.AtWork() {
			if hosts, err = a.Waited(ctx, at); err != nil {
				return err
			}
		}
		read := reader{a, ctx, nil}
		next := change(at, hosts, &read)
		if read.failed != nil || same(at.State, next) {
			return read.failed
		}
		row.Outcome, row.Code, row.Serial, row.Message = server.Granted, Code, at.Serial, message
		row.Detail = map[string]string{"act": act}
		return a.SetRollout(ctx, at, next, row.Op())
	})
}
