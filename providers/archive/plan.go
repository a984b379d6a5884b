package archive

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/providers/rollout"
)

// plan returns the state of the rollout after an import. If the version has a rollout plan, plan
// returns a new rollout. Otherwise it returns the last rollout as ended.
func (l *lock) plan(ctx context.Context, r *StreamReader, t Terms, made *tree, old, v Version, last Rollout) (Rollout, error) {
	now := time.Now()
	bridge, back, err := l.follow(ctx, r, t, old, v)
	if err != nil {
		return last, err
	}
	allAtOnce := t.AtOnce || old.Restored
	limits, err := l.budgets(ctx, t.Host, made, old, last)
	if err != nil {
		return last, err
	}
	switch {
	case allAtOnce && !t.BeyondBudget && len(limits) > 0:
		why := "at once"
		if old.Restored && !t.AtOnce {
			why = "at once, because this state was restored"
		}
		return last, refusef("serial %d would be offered to all hosts %s, and rollout.atOnce permits %s: publish it without --at-once, or add --beyond-budget", v.Serial, why, limits[0])
	case t.AtOnce || old.Serial == 0 || old.Restored: // a restored version is offered to no host
		last.State = last.End(rollout.Superseded, fmt.Sprintf("serial %d is offered to all", v.Serial), now)
		return last, nil
	case made.unreadable != nil:
		return last, refusef("the plan of its rollout cannot be read here: %w, or publish with --at-once", made.unreadable)
	case made.plan == nil && back == nil && !t.BeyondBudget && len(limits) > 0:
		return last, refusef("serial %d has no rollout and would be offered to all hosts at once, and rollout.atOnce of serial %d permits %s: write rollout.waves = [ { rest = true; } ]; for the version that removes the budget, or publish with --at-once --beyond-budget", v.Serial, old.Serial, limits[0])
	case made.plan == nil && back == nil:
		return last, nil
	case made.plan == nil:
		return last, refusef("former documents come with a version whose policy here has no rollout: publish it without")
	case back == nil:
		return last, refusef("serial %d is to be rolled out in %d waves, and the documents to go back to are missing: use florctl publish, or --at-once to offer it to all hosts", v.Serial, len(made.plan.Waves))
	}
	if err := l.assign(ctx, t, made, bridge, now); err != nil {
		return last, err
	}
	plan := *made.plan
	plan.Budgets = kept(plan.Budgets, limits, made.hosts)
	state := rollout.New(v.Serial, old.Serial, plan, bridge != nil, now)
	state.Again, state.Claims = back.Serial, last.Claims
	return Rollout{State: state, Bridge: bridge, Return: back, revision: last.revision}, nil
}

// budgets returns the disruption budgets that a new version must observe. These are the budgets of
// the version, of a rollout in progress, and of the version that is served. The budgets of the
// served version apply because a rollback may lead to a version without budgets.
func (l *lock) budgets(ctx context.Context, host string, made *tree, served Version, last Rollout) (all []document.Budget, err error) {
	if made.plan != nil {
		all = made.plan.Budgets
	}
	if last.AtWork() {
		all = slices.Concat(all, last.Budgets)
	}
	if served.Serial == 0 || served.Restored {
		return all, nil
	}
	entries, err := l.entries(ctx, served, host)
	if err != nil {
		return nil, err
	}
	documents, err := l.documents(ctx, slices.DeleteFunc(slices.Clone(entries), func(e entry) bool { return !isPolicy(e) }))
	if err != nil {
		return nil, err
	}
	for _, d := range documents {
		policy, err := document.Open([]byte(d.Envelope), []byte(d.Body), d.Signature)
		// A policy that this release cannot read must not prevent a publication to all hosts.
		if err == nil && policy.Policy().Rollout != nil {
			all = slices.Concat(all, policy.Policy().Rollout.Budgets)
		}
	}
	return all, nil
}

// kept returns the budgets that apply to the rollout of a version. These are the budgets of the
// version, and the limits for tags for which the version has no budget. A version that removes a
// budget is thus still rolled out within that budget.
func kept(own, limits []document.Budget, hosts index) []document.Budget {
	all := slices.Clone(own)
	for _, b := range limits {
		if slices.ContainsFunc(all, func(o document.Budget) bool { return slices.Equal(o.Tags, b.Tags) }) {
			continue
		}
		// A host that the version removes reports no more, and would use the budget forever.
		b.Hosts = slices.DeleteFunc(slices.Clone(b.Hosts), func(h string) bool { return hosts[h] == nil })
		if len(b.Hosts) > 0 {
			all = append(all, b)
		}
	}
	return all
}

// follow writes two further sets of documents for a rollout: the policies that apply during the
// rollout, with a serial below that of the version, and the documents for a return, with a serial
// above it.
func (l *lock) follow(ctx context.Context, r *StreamReader, t Terms, old, v Version) (bridge, back *Version, err error) {
	for {
		if r, err = r.Next(); r == nil || err != nil {
			return bridge, back, refuse(err)
		}
		made, err := l.write(ctx, r, Terms{Signers: t.Signers})
		if err != nil {
			return nil, nil, err
		}
		other := made.version(r.Head)
		switch {
		case other.Cluster != v.Cluster:
			return nil, nil, refusef("documents of cluster %s follow those of %s", other.Cluster, v.Cluster)
		case bridge == nil && back == nil && old.Serial < other.Serial && other.Serial < v.Serial:
			bridge = &other
		case back == nil && other.Serial > v.Serial:
			back = &other
		default:
			return nil, nil, refusef("documents of serial %d follow those of %d, and %d is served: commit anew, two seconds later, and publish that", other.Serial, v.Serial, old.Serial)
		}
		if back != nil && back.Content != old.Content {
			return nil, nil, refusef("the documents to go back to are not those of serial %d, which is served: publish again", old.Serial)
		}
		if err := l.index(ctx, other, made.hosts); err != nil {
			return nil, nil, err
		}
	}
}

// assign records in the index the wave of each host, and the problems that each host had before the
// rollout.
func (l *lock) assign(ctx context.Context, t Terms, made *tree, bridge *Version, now time.Time) error {
	before := map[string]rollout.Problems{}
	if t.Before != nil {
		var err error
		if before, err = t.Before(ctx, *made.plan, now); err != nil {
			return err
		}
	}
	set := func(host string, change func(*entry)) {
		for i := range made.hosts[host] {
			change(&made.hosts[host][i])
		}
	}
	for i, wave := range made.plan.Waves {
		for _, host := range wave {
			set(host, func(e *entry) { e.Wave = i + 1 })
		}
	}
	for _, m := range made.plan.Maintenance {
		for _, host := range m.Hosts {
			set(host, func(e *entry) { e.Group = m.Group })
		}
	}
	for host, problems := range before {
		set(host, func(e *entry) { e.Before = problems })
	}
	if bridge == nil {
		return nil
	}
	bridged, err := l.whole(ctx, *bridge)
	if err != nil {
		return err
	}
	for host, entries := range bridged {
		if made.hosts[host] == nil || len(entries) != 1 || !isPolicy(entries[0]) {
			return refusef("policies for the time of the rollout: %s has other documents there: use florctl publish", host)
		}
	}
	return nil
}

// isPolicy reports whether a document is a policy. The document must already be verified.
func isPolicy(e entry) bool {
	var envelope document.Envelope
	return json.Unmarshal([]byte(e.Envelope), &envelope) == nil && envelope.Kind == document.DocPolicy
}
