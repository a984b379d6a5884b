package hostreport

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/florete/florete/internal/hostdir"
)

// Limits for the time since the last report of a host. Hosts report every five minutes. After
// Silence, a host counts as silent, because it has missed three reports. After Overdue, its next
// report counts as late.
const (
	Silence = 15 * time.Minute
	Overdue = 7 * time.Minute
)

// Kinds of Problem. They name the part of the host that has the problem.
const (
	OfNeed      = "need"
	OfUnit      = "unit"
	OfForwarder = "forwarder"
)

// Problem is a reason why a host is not well. Rollouts, florctl status, flor sync and flor doctor
// all decide by Problems, or by the methods that it calls.
type Problem struct {
	Kind    string
	Name    string // identifies the problem; does not change while it lasts
	Detail  string // more details, which may change
	Lasting bool   // true if the problem lasts until someone acts
}

// Problems returns the problems of a host according to its report, or none if the host is well.
func Problems(r Report) []Problem {
	var all []Problem
	add := func(p Problem, well bool) {
		if !well {
			all = append(all, p)
		}
	}
	for _, n := range r.Needs {
		add(n.Problem())
	}
	for _, u := range r.Units {
		add(u.Problem())
	}
	for _, text := range r.Forwarder.problems() {
		add(Problem{Kind: OfForwarder, Name: text, Detail: text}, false)
	}
	return all
}

// Problem returns the problem of the need. If the need has no problem, well is true. A fulfilled
// need has a problem if a unit could not be restarted with the delivered files.
func (n Need) Problem() (p Problem, well bool) {
	p = Problem{OfNeed, needProblem(n.ID), fmt.Sprintf("need %s is %s", n.ID, n.State), n.State.Lasting()}
	if n.Error != nil {
		p.Detail += ": " + n.Error.Code + ": " + n.Error.Message
		if n.State == hostdir.NeedFulfilled {
			p.Name = "a unit of need " + n.ID + " was not restarted"
		}
	}
	return p, n.State.Well(n.Error)
}

func needProblem(id string) string { return "need " + id + " is not fulfilled" }

// NoDocuments is the Problem.Name of a host that could not fetch its documents.
var NoDocuments = needProblem("config-documents")

// Problem returns the problem of the systemd unit. If the unit has no problem, well is true.
func (u Unit) Problem() (p Problem, well bool) {
	p = Problem{OfUnit, "unit " + u.Name + " does not run", fmt.Sprintf("%s is %s (%s)", u.Name, u.Active, cmp.Or(u.Text, u.Sub)), u.Active == "failed"}
	if u.Runs() {
		p.Name = "unit " + u.Name + " waits"
	}
	return p, u.Runs() && !u.Waits()
}

// Runs reports whether systemd has started the unit.
func (u Unit) Runs() bool { return u.Active == "active" || u.Active == "reloading" }

// Waits reports whether the unit waits for an event. It then runs or starts, and its status text
// begins with "waiting for".
func (u Unit) Waits() bool {
	return (u.Runs() || u.Active == "activating") && strings.HasPrefix(u.Text, "waiting for ")
}

// Running is the Forwarder.State of a forwarder that forwards connections.
const Running = "running"

func (f *Forwarder) problems() (all []string) {
	if f == nil {
		return []string{"its forwarder does not answer"}
	}
	if f.State != Running {
		all = append(all, "its forwarder is "+f.State)
	}
	for _, p := range f.Problems {
		all = append(all, "its forwarder: "+p)
	}
	return all
}
