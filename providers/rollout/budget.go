package rollout

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostreport"
	"github.com/florete/florete/internal/unixtime"
)

// Stage says which documents a host is offered during a rollout.
type Stage string

// The stages of a host, in order.
const (
	StageFormer  Stage = ""        // the former version
	StagePolicy  Stage = "policy"  // the former version, with the policy that grants the needs of both
	StageVersion Stage = "version" // the new version, with that policy
	StageWhole   Stage = "whole"   // the new version, with its own policy
	StageBack    Stage = "back"    // the former documents again
)

// Stage returns which documents a host is offered. wave and group are those of Offers. If bridged
// is true and the rollout has a policy for the host that grants the needs of both versions, the
// host is offered this policy instead of its version's.
func (s State) Stage(host string, wave int, group string) (stage Stage, bridged bool) {
	switch {
	case s.budgeted(host):
		stage = s.Stages[host]
	case s.Status == Returning:
		// Some hosts may still have the new version. Once policies of the new version were
		// offered, none with a lower serial can follow.
		return StageBack, !s.Closing
	case s.Closing:
		stage = StageWhole
	case s.Offers(wave, group):
		stage = StageVersion
	default:
		stage = StagePolicy
	}
	return stage, stage == StagePolicy || stage == StageVersion
}

func (s State) budgeted(host string) bool {
	return slices.ContainsFunc(s.Budgets, func(b document.Budget) bool {
		_, found := slices.BinarySearch(b.Hosts, host)
		return found
	})
}

// Stop ends a rollout in progress, and hosts are offered the former documents again. As long as
// budgets do not permit that for all hosts, the rollout is returning.
func (s State) Stop(ends Status, reason string, now time.Time) State {
	if len(s.Stages) == 0 || !s.AtWork() {
		return s.End(ends, reason, now)
	}
	if s.Status != Returning {
		s.Status, s.Ends = Returning, ends
		s.offered(now)
		s.Reason = reason
	}
	return s
}

// goBack offers the former documents to further hosts. It does not wait for the last hosts, because
// one that stays broken must not prevent the next publication.
func (s State) goBack(now time.Time, hosts []Host, report func(host string) hostreport.Kept) State {
	blocked, _, offered := s.allot(now, hosts, report)
	s.Blocked = some(blocked)
	if offered {
		s.Since = unixtime.Of(now)
	}
	if len(blocked) == 0 {
		return s.End(s.Ends, s.Reason, now)
	}
	return s
}

// member is a host in a budget.
type member struct {
	name     string
	manifest *Host // nil for a host in no wave
	policy   *Host // nil for a host without a policy that grants the needs of both versions
}

// members returns the hosts in budgets, by name.
func (s State) members(hosts []Host) map[string]*member {
	all := map[string]*member{}
	for _, b := range s.Budgets {
		for _, name := range b.Hosts {
			all[name] = &member{name: name}
		}
	}
	for i, h := range hosts {
		switch m := all[h.Name]; {
		case m == nil:
		case h.Wave == 0:
			m.policy = &hosts[i]
		default:
			m.manifest = &hosts[i]
		}
	}
	return all
}

// goal returns the stage that a host is to be offered now, if budgets permit.
func (s State) goal(m *member) Stage {
	is := s.Stages[m.name]
	switch {
	case s.Status == Returning && is == StageFormer: // which has the former documents
		return is
	case s.Status == Returning:
		return StageBack
	case s.Closing && m.policy != nil:
		return StageWhole
	case m.manifest == nil || s.Offers(m.manifest.Wave, m.manifest.Group):
		return StageVersion
	case m.policy != nil:
		return StagePolicy
	}
	return is
}

// due returns the hosts that are to be offered documents, if budgets permit.
func (s State) due(hosts []Host) map[string]bool {
	all := map[string]bool{}
	for name, m := range s.members(hosts) {
		if s.goal(m) != s.Stages[name] {
			all[name] = true
		}
	}
	return all
}

// closes reports whether a host in a budget has yet to receive its policy of the new version.
func (s State) closes(hosts []Host) bool {
	for _, m := range s.members(hosts) {
		if m.policy != nil {
			return true
		}
	}
	return false
}

// use is the use of one budget.
type use struct {
	document.Budget
	changing int
	taken    []string // reasons, of hosts that are being changed or are not healthy
}

// usage is the use of all budgets.
type usage struct {
	of      map[string][]*use // by host
	changes map[string]bool   // hosts that are being changed
	takes   map[string]bool   // hosts that are being changed or are not healthy
}

// usage returns the use of all budgets at the time now, and a text for each host that is being
// changed.
func (s State) usage(now time.Time, members map[string]*member, report func(host string) hostreport.Kept) (l usage, changing []string) {
	uses := make([]use, len(s.Budgets))
	l = usage{map[string][]*use{}, map[string]bool{}, map[string]bool{}}
	for i, b := range s.Budgets {
		uses[i].Budget = b
		for _, name := range b.Hosts {
			l.of[name] = append(l.of[name], &uses[i])
		}
	}
	for _, name := range slices.Sorted(maps.Keys(members)) {
		m := members[name]
		if change, text := s.takes(now, m, report(name)); text != "" {
			l.take(name, change, text)
			if change && (m.manifest == nil || !m.manifest.excuses(silent, false)) {
				changing = append(changing, name+": "+text)
			}
		}
	}
	return l, changing
}

func (l usage) take(name string, change bool, text string) {
	for _, u := range l.of[name] {
		if change && !l.changes[name] {
			u.changing++
		}
		if !l.takes[name] {
			u.taken = append(u.taken, name+": "+text)
		}
	}
	l.changes[name], l.takes[name] = l.changes[name] || change, true
}

// waits returns why a host cannot be changed now, or "" if all budgets permit it.
func (l usage) waits(name string) string {
	for _, u := range l.of[name] {
		full := len(u.taken)+1 > u.Most
		if l.takes[name] {
			full = u.changing-rank(l.changes[name])+1 > u.Most
		}
		if full {
			return fmt.Sprintf("%s: waits for the budget of %s: %s", name, u.Budget, some(slices.Clone(u.taken)))
		}
	}
	return ""
}

// allot offers documents to hosts as far as all budgets permit. It returns a text for each host
// that waits for a budget, and for each host that is being changed.
func (s *State) allot(now time.Time, hosts []Host, report func(host string) hostreport.Kept) (blocked, changing []string, offered bool) {
	if len(s.Budgets) == 0 {
		return nil, nil, false
	}
	members := s.members(hosts)
	l, changing := s.usage(now, members, report)
	var due []*member
	waitsForPolicy := false
	for _, name := range slices.Sorted(maps.Keys(members)) {
		if m := members[name]; s.goal(m) != s.Stages[name] {
			due = append(due, m)
			waitsForPolicy = waitsForPolicy || s.Status == Returning && m.policy == nil
		}
	}
	// A host that takes part of a budget in any case comes first: it may become healthy by that.
	slices.SortStableFunc(due, func(a, b *member) int {
		return cmp.Compare(rank(l.takes[b.name]), rank(l.takes[a.name]))
	})
	was := s.Stages
	for _, m := range due {
		waits := l.waits(m.name)
		switch {
		case waits != "":
			blocked = append(blocked, waits)
		case waitsForPolicy && m.policy != nil:
			blocked = append(blocked, m.name+": keeps the policy of both versions until other hosts have been offered the former documents")
		default:
			if !offered {
				s.Stages, offered = maps.Clone(was), true
				if s.Stages == nil {
					s.Stages = map[string]Stage{}
				}
			}
			s.Stages[m.name] = s.goal(m)
			l.take(m.name, true, "has just been offered documents")
		}
	}
	return blocked, changing, offered
}

// Claim is the part of its budgets that a host takes while an operator deploys it.
type Claim struct {
	By    string        `json:"by"`
	Until unixtime.Time `json:"until"`
}

// Claim adds a claim of a host. budgets are those of the version in force, which count besides the
// budgets of a rollout in progress. If a budget does not permit to change the host now, Claim
// returns the reason and an unchanged state.
func (s State) Claim(host string, c Claim, budgets []document.Budget, now time.Time, hosts []Host, report func(host string) hostreport.Kept) (_ State, waits string) {
	if was, ok := s.Claims[host]; ok && was.By != c.By && now.Before(was.Until.Time) {
		return s, fmt.Sprintf("%s: is being deployed by %s", host, was.By)
	}
	all := s
	all.Budgets = budgets
	if s.AtWork() {
		all.Budgets = slices.Concat(s.Budgets, budgets)
	}
	l, _ := all.usage(now, all.members(hosts), report)
	if waits = l.waits(host); waits != "" {
		return s, waits
	}
	s.Claims = s.claims(now)
	s.Claims[host] = c
	return s, ""
}

// Release removes the claim of a host.
func (s State) Release(host string, now time.Time) State {
	s.Claims = s.claims(now)
	delete(s.Claims, host)
	return s
}

// claims returns a copy of the claims that have not expired.
func (s State) claims(now time.Time) map[string]Claim {
	all := map[string]Claim{}
	for host, c := range s.Claims {
		if now.Before(c.Until.Time) {
			all[host] = c
		}
	}
	return all
}

func rank(b bool) int {
	if b {
		return 1
	}
	return 0
}

// takes returns why a host takes a part of its budgets, or "" if it takes none. change is true if
// the host has been offered documents and has not yet confirmed them.
func (s State) takes(now time.Time, m *member, r hostreport.Kept) (change bool, text string) {
	stage := s.Stages[m.name]
	if c, ok := s.Claims[m.name]; ok && now.Before(c.Until.Time) {
		return true, "is being deployed by " + c.By
	}
	if r.Received.IsZero() && (m.manifest == nil || m.manifest.New) {
		return false, "" // nothing of this cluster runs on it yet
	}
	report, _ := r.Decode()
	want := s.wants(m, stage)
	for _, kind := range slices.Sorted(maps.Keys(want)) {
		if serialOf(report.Documents, kind) < want[kind] {
			return true, fmt.Sprintf("has not put serial %d in force", want[kind])
		}
	}
	if report.Pending != nil {
		return true, "has a change that is not confirmed"
	}
	for _, problem := range slices.Sorted(maps.Keys(ProblemsOf(r, 0, now))) {
		return stage != StageFormer, problem
	}
	return false, ""
}

// wants returns the serials that a host at a stage must have put in force, by type of document.
func (s State) wants(m *member, stage Stage) map[string]int64 {
	want := map[string]int64{}
	if m.manifest == nil { // its documents come with its system
		return want
	}
	switch stage {
	case StageVersion, StageWhole:
		want[document.DocManifest] = s.Serial
	case StageBack:
		if !m.manifest.New {
			want[document.DocManifest] = s.Again
		}
	default:
		if !m.manifest.New {
			want[document.DocManifest] = s.Former
		}
	}
	if m.policy == nil {
		return want
	}
	switch stage {
	case StagePolicy, StageVersion:
		want[document.DocPolicy] = m.policy.Serial
	case StageWhole:
		want[document.DocPolicy] = s.Serial
	case StageBack:
		if !m.policy.New {
			want[document.DocPolicy] = s.Again
		}
	}
	return want
}
