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

// Stage tells how far a host has come in a rollout, and thereby which documents it is offered. For
// hosts in disruption budgets, stages are recorded in State.Stages. For all other hosts, the stage
// follows from the state of the rollout.
type Stage string

// These are the stages of a host, in order.
const (
	StageFormer  Stage = ""        // the former version
	StagePolicy  Stage = "policy"  // the former version, with the policy that grants the needs of both
	StageVersion Stage = "version" // the new version, with that policy
	StageWhole   Stage = "whole"   // the new version, with its own policy
	StageBack    Stage = "back"    // the former documents again
)

// Stage returns the stage of a host, given its wave and the group whose maintenance window applies
// to it. If bridged is true, a provider host uses a policy that grants the needs of both versions,
// instead of the policy of its version. For a host without such a policy, bridged has no meaning.
func (s State) Stage(host string, wave int, group string) (stage Stage, bridged bool) {
	switch {
	case s.budgeted(host):
		stage = s.Stages[host]
	case s.Status == Returning:
		// Some hosts may still have the new version, so providers keep granting the needs of
		// both. While the rollout was closing, hosts were offered policies of the new version, and
		// would refuse a policy with a lower serial.
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

// budgeted reports whether a host is in a disruption budget.
func (s State) budgeted(host string) bool {
	return slices.ContainsFunc(s.Budgets, func(b document.Budget) bool {
		_, found := slices.BinarySearch(b.Hosts, host)
		return found
	})
}

// Stop returns the state of a rollout that is to end with the given status, and to return hosts to
// their former documents. If hosts in disruption budgets have been offered the new documents, they
// return when the budgets permit it, and the rollout has the status Returning until then. Otherwise
// the rollout ends at once.
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

// goBack returns the next state of a rollout that is returning. It offers the former documents to
// further hosts, as far as budgets permit. The rollout ends when all hosts have been offered these
// documents. It does not wait until the last hosts are healthy, because a host that stays broken
// must not prevent the next publication.
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

// member is a host in a disruption budget. It includes the host's entries in the list of hosts for
// which a rollout waits.
type member struct {
	name     string
	manifest *Host // entry for its manifest; nil if the host is in no wave
	policy   *Host // entry for its policy that grants the needs of both versions; nil if it has none
}

// members returns the hosts that are in disruption budgets. The keys are the names of the hosts.
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

// goal returns the stage to which the rollout would bring a host now if there were no budgets.
func (s State) goal(m *member) Stage {
	is := s.Stages[m.name]
	switch {
	case s.Status == Returning && is == StageFormer: // the host still has the former documents
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

// due returns the hosts in budgets that have not reached their goal. They must be offered other
// documents as soon as budgets permit.
func (s State) due(hosts []Host) map[string]bool {
	all := map[string]bool{}
	for name, m := range s.members(hosts) {
		if s.goal(m) != s.Stages[name] {
			all[name] = true
		}
	}
	return all
}

// closes reports whether any host in a budget must still receive its policy of the new version
// after the last wave. This is so for a host that has had a policy that grants the needs of both
// versions.
func (s State) closes(hosts []Host) bool {
	for _, m := range s.members(hosts) {
		if m.policy != nil {
			return true
		}
	}
	return false
}

// use is a disruption budget and the hosts that use it at a given time.
type use struct {
	document.Budget
	changing int      // number of hosts that are being changed
	taken    []string // for each host that is being changed or is not healthy, its name and the reason
}

// usage contains the use of all disruption budgets at a given time. From it, allot decides which
// hosts may be changed next.
type usage struct {
	of      map[string][]*use // budgets of each host, by host
	changes map[string]bool   // hosts that are being changed
	takes   map[string]bool   // hosts that are being changed or are not healthy
}

// usage returns the use of all budgets at the time now. The result changing contains a text for
// each host that is being changed. It leaves out hosts that did not report when the rollout began.
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

// take records that a host uses its budgets. The argument text is the reason. The argument change
// is true if the host is being changed, and false if the host is only not healthy.
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

// waits returns the reason why a host cannot be changed now. It returns "" if all budgets of the
// host permit the change. A host that already uses a budget because it is not healthy may be
// changed if fewer than Most hosts are being changed, because it then does not use more of the
// budget.
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

// allot offers documents to hosts in budgets, as far as all budgets permit, and records the offers
// in s.Stages. The result blocked contains a text for each host that waits for a budget, and
// changing contains a text for each host that is being changed. The result offered is true if a
// host was offered documents.
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
	// Hosts that already use a budget come first, because new documents may make them healthy.
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

// Claim records that an operator may deploy a certain host now. Until it is released or expires,
// disruption budgets count the host as one that is changing.
type Claim struct {
	By    string        `json:"by"`    // operator who deploys the host
	Until unixtime.Time `json:"until"` // time at which the claim expires
}

// Claim returns the state after an operator claimed a host in order to deploy it. If a disruption
// budget does not permit a change of the host now, or if another operator has claimed it, Claim
// returns the unchanged state and the reason. The budgets of the version in force are in the
// argument budgets. Those of a rollout in progress apply in addition. The arguments now, hosts and
// report are as for Step.
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

// Release returns the state without the claim for a host. Call it after the host has been deployed.
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

// rank returns 1 for true and 0 for false.
func rank(b bool) int {
	if b {
		return 1
	}
	return 0
}

// takes returns the reason why a host uses its budgets. It returns "" if the host does not use
// them. The result change is true if the host is being changed. This is so if an operator deploys
// the host, or if it was offered documents and is not healthy with them yet.
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

// wants returns the serials of the documents that a host must have put in force at a stage. The
// keys are the types of documents.
func (s State) wants(m *member, stage Stage) map[string]int64 {
	want := map[string]int64{}
	if m.manifest == nil { // the documents of the host come with its system
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
