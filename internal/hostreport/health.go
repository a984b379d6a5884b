package hostreport

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/florete/florete/internal/hostdir"
)

// Silence is the time without a report after which a host counts as silent: hosts report every five
// minutes, so it has missed three reports. Overdue is the time after which the first report is
// late.
const (
	Silence = 15 * time.Minute
	Overdue = 7 * time.Minute
)

// Kinds of Problem.
const (
	OfNeed      = "need"
	OfUnit      = "unit"
	OfForwarder = "forwarder"
)

// Problem is a problem of a host. Rollouts, florctl status, flor sync and flor doctor all use
// Problems, or the methods that it calls, to decide whether a host is well.
type Problem struct {
	Kind    string
	Name    string // identifies the problem; does not change while it lasts
	Detail  string // more details, which may change
	Lasting bool   // lasts until somebody acts
}

// Problems returns the problems in a host's report, none if it is well.
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

// Problem returns the problem of a need, and whether the need is well. A fulfilled need may have a
// unit that failed to restart with the delivered files.
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

// NoDocuments is the name of the problem of a host that could not fetch documents.
var NoDocuments = needProblem("config-documents")

// Problem returns the problem of a unit, and whether the unit is well.
func (u Unit) Problem() (p Problem, well bool) {
	p = Problem{OfUnit, "unit " + u.Name + " does not run", fmt.Sprintf("%s is %s (%s)", u.Name, u.Active, cmp.Or(u.Text, u.Sub)), u.Active == "failed"}
	if u.Runs() {
		p.Name = "unit " + u.Name + " waits"
	}
	return p, u.Runs() && !u.Waits()
}

// Runs reports whether systemd has started the unit.
func (u Unit) Runs() bool { return u.Active == "active" || u.Active == "reloading" }

// Waits reports whether the unit has the status text that it waits for something.
func (u Unit) Waits() bool {
	return (u.Runs() || u.Active == "activating") && strings.HasPrefix(u.Text, "waiting for ")
}

// Running is the state of a forwarder that forwards connections.
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
