// Package rollout decides when each host of a cluster is offered a new version of its documents.
//
//	began ──▶ active ──▶ done        every wave was healthy: all are offered the version
//	            │ ▲
//	            ▼ │
//	          paused                 nothing changes until an operator resumes
//
//	active, paused ──▶ stopped       a host was not healthy: the former documents again
//	               ──▶ aborted       an operator ended it: the former documents again
//	               ──▶ superseded    an operator published to all at once
//
// Disruption budgets (document.Budget) also apply when hosts go back. A rollout that was stopped or
// aborted has the status returning until the former documents have been offered to all hosts.
//
// During a rollout, hosts of the waves that it has reached are offered the new version, and all
// other hosts the former version. Wave 0 consists of provider hosts. Before any host has the new
// version, they receive policies that grant the needs of both versions. Step is a pure function,
// and no state is kept in memory alone.
package rollout

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostreport"
	"github.com/florete/florete/internal/unixtime"
)

// Status tells whether a rollout is in progress or how it ended.
type Status string

// These are the statuses of a rollout. A rollout that is active, paused or returning is in
// progress. A rollout with any other status has ended.
const (
	Active     Status = "active"
	Paused     Status = "paused"
	Returning  Status = "returning"
	Done       Status = "done"
	Stopped    Status = "stopped"
	Aborted    Status = "aborted"
	Superseded Status = "superseded"
)

// State describes how far a rollout has come. If no rollout is in progress, it describes the last
// one. The methods do not change the State, but return the changed State.
type State struct {
	Serial int64  `json:"serial"` // serial of the new version
	Former int64  `json:"former"` // serial of the former version, which hosts outside of the reached waves are offered
	Status Status `json:"status"`
	Reason string `json:"reason,omitempty"` // reason of the status; while in progress, what the rollout waits for

	Wave    int `json:"wave"` // number of the wave that was reached, from 1; 0 while only provider hosts are reached
	Waves   int `json:"waves"`
	Healthy int `json:"healthy"` // see document.Rollout
	Within  int `json:"within"`

	Windows map[string]document.MaintenanceWindow `json:"windows,omitempty"` // maintenance windows, by group
	Opened  map[string]int                        `json:"opened,omitempty"`  // wave that the hosts of a group with a window are offered, by group

	Budgets []document.Budget `json:"budgets,omitempty"`
	Stages  map[string]Stage  `json:"stages,omitempty"`  // stages of hosts in budgets, by host; a host without an entry is offered the former documents
	Closing bool              `json:"closing,omitempty"` // every wave was healthy, and provider hosts in budgets now receive the policies of the new version
	Again   int64             `json:"again,omitempty"`   // serial under which the former documents are offered again
	Ends    Status            `json:"ends,omitempty"`    // status that follows returning
	Blocked string            `json:"blocked,omitempty"` // while returning, the hosts that wait for a budget
	Claims  map[string]Claim  `json:"claims,omitempty"`  // claims of operators who deploy hosts, by host; also while no rollout is in progress

	Began    unixtime.Time `json:"began"`
	Since    unixtime.Time `json:"since"`             // time of the last offer
	Steady   unixtime.Time `json:"steady,omitzero"`   // time since which all hosts reached are healthy
	Unsteady unixtime.Time `json:"unsteady,omitzero"` // time since which one of them is not healthy
	Ended    unixtime.Time `json:"ended,omitzero"`
}

// Host is a host that takes part in a rollout. The rollout waits until the host uses its new
// documents.
type Host struct {
	Name   string
	Wave   int    // number of the wave, from 1; 0 for a provider host that receives a policy before
	Group  string // group whose maintenance window applies; empty for none
	Serial int64  // serial of the manifest, or in wave 0 of the policy, that the host must put in force

	Before Problems // problems of the host when the rollout began

	// New reports whether the host had no manifest in the former version. In wave 0, it reports
	// whether the host had no policy.
	New bool
}

// New returns the state of a rollout that begins now. The arguments serial and former are the
// serials of the new version and of the version before it. If bridged is true, the rollout begins
// with provider hosts, which first receive policies that grant the needs of both versions.
func New(serial, former int64, plan document.Rollout, bridged bool, now time.Time) State {
	s := State{Serial: serial, Former: former, Status: Active, Waves: len(plan.Waves), Healthy: plan.Healthy, Within: plan.Within,
		Budgets: plan.Budgets, Began: unixtime.Of(now), Since: unixtime.Of(now)}
	for _, m := range plan.Maintenance {
		if s.Windows == nil {
			s.Windows = map[string]document.MaintenanceWindow{}
		}
		s.Windows[m.Group] = m.Window
	}
	if !bridged {
		s.Wave = 1
		s.open(now)
	}
	return s
}

// AtWork reports whether the rollout is in progress. A paused rollout is in progress, too. During
// that time, hosts may be offered different versions.
func (s State) AtWork() bool {
	return s.Status == Active || s.Status == Paused || s.Status == Returning
}

// Offers reports whether the new version is offered to the hosts in a wave. The argument group is
// the group whose maintenance window applies to the hosts, or empty. A host in a disruption budget
// may have to wait longer. For such a host, call Stage.
func (s State) Offers(wave int, group string) bool {
	if _, has := s.Windows[group]; has {
		return wave <= s.Opened[group]
	}
	return wave <= s.Wave
}

// open offers the wave to the groups whose maintenance window is open. It reports whether it
// offered the wave to any group.
func (s *State) open(now time.Time) (opened bool) {
	for group, w := range s.Windows {
		if s.Opened[group] < s.Wave && w.Open(now) {
			s.Opened = maps.Clone(s.Opened)
			if s.Opened == nil {
				s.Opened = map[string]int{}
			}
			s.Opened[group], opened = s.Wave, true
		}
	}
	return opened
}

// Step returns the state of the rollout after the step that is due at the time now. If no step is
// due, the state is unchanged. The argument hosts lists all hosts for which the rollout waits. The
// function report returns the last report of a host, or the zero value if there is none.
func (s State) Step(now time.Time, hosts []Host, report func(host string) hostreport.Kept) State {
	if s.Status == Returning {
		return s.goBack(now, hosts, report)
	}
	if s.Status != Active {
		return s
	}
	if s.open(now) {
		s.offered(now)
	}
	var failing, waiting, closed []string
	due := s.due(hosts)
	for _, h := range hosts {
		switch {
		case h.Wave > s.Wave:
		case h.Wave > 0 && !s.Offers(h.Wave, h.Group):
			closed = append(closed, h.Name)
		case due[h.Name]: // allot offers it, or says why not
		default:
			fails, waits := s.judge(now, h, report(h.Name))
			failing, waiting = append(failing, fails...), append(waiting, waits...)
		}
	}
	if len(failing) == 0 {
		blocked, changing, offered := s.allot(now, hosts, report)
		if offered {
			s.offered(now)
			return s
		}
		waiting = append(waiting, blocked...)
		if s.Closing {
			waiting = append(waiting, changing...)
		}
	}
	if len(waiting) == 0 {
		s.Unsteady = unixtime.Time{}
	} else if s.Unsteady.IsZero() {
		s.Unsteady = unixtime.Of(now)
	}
	within := time.Duration(s.Within) * time.Second
	switch {
	case len(failing) > 0:
		return s.Stop(Stopped, some(failing), now)
	case len(waiting) > 0 && now.Sub(s.Unsteady.Time) >= within:
		return s.Stop(Stopped, fmt.Sprintf("for %s: %s", within, some(waiting)), now)
	case len(waiting) > 0:
		s.Steady, s.Reason = unixtime.Time{}, "waits for hosts: "+some(waiting)
		return s
	case s.Wave == 0:
		return s.advance(now)
	}
	if s.Closing {
		return s.End(Done, "", now)
	}
	if s.Steady.IsZero() {
		s.Steady = unixtime.Of(now)
	}
	steady := now.Sub(s.Steady.Time) >= time.Duration(s.Healthy)*time.Second
	switch {
	case len(closed) > 0:
		s.Reason = "waits for the maintenance windows of " + some(closed)
	case !steady:
		s.Reason = fmt.Sprintf("all hosts reached are healthy since %s", s.Steady.UTC().Format(time.RFC3339))
	case s.Wave < s.Waves:
		return s.advance(now)
	case s.closes(hosts):
		s.Closing = true
		s.offered(now)
	default:
		return s.End(Done, "", now)
	}
	return s
}

// advance offers the next wave.
func (s State) advance(now time.Time) State {
	s.Wave++
	s.open(now)
	s.offered(now)
	return s
}

// offered records that hosts were offered documents now. All waiting periods then start again.
func (s *State) offered(now time.Time) {
	s.Since, s.Steady, s.Unsteady, s.Reason = unixtime.Of(now), unixtime.Time{}, unixtime.Time{}, ""
}

// End returns the state of the rollout after it has ended with the given status, for the given
// reason. If the rollout has already ended, its state is unchanged.
func (s State) End(status Status, reason string, now time.Time) State {
	if s.AtWork() {
		s.Status, s.Reason, s.Ended = status, reason, unixtime.Of(now)
		s.Stages, s.Blocked = nil, ""
	}
	return s
}

// Pause returns the state of the rollout after it was paused for the given reason. Hosts keep the
// documents that they were offered. No further host is offered the new version until Resume is
// called.
func (s State) Pause(reason string) State {
	s.Status, s.Reason = Paused, reason
	return s
}

// Resume returns the state of a paused rollout after it was resumed. All waiting periods start
// again at the time now.
func (s State) Resume(now time.Time) State {
	s.Status = Active
	s.offered(now)
	return s
}

// some lists the first names of a list and the number of the others.
func some(all []string) string {
	const most = 5
	slices.Sort(all)
	all = slices.Compact(all)
	if len(all) > most {
		return fmt.Sprintf("%s and %d more", strings.Join(all[:most], "; "), len(all)-most)
	}
	return strings.Join(all, "; ")
}
