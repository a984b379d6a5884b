package hostreport

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/florete/florete/internal/hostdir"
)

// Silence is how long a host that reports every five minutes may go without a report: three that it
// did not send. Overdue is when the first of them is late.
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

// Problem is something that is wrong with a host. A rollout, florctl status, flor sync and flor
// doctor all decide by Problems, or by the methods that it calls, whether a host is well.
type Problem struct {
	Kind    string
	Name    string // the same as long as the problem is the same
	Detail  string // says more, and may change
	Lasting bool   // ends only when somebody does something
}

// Problems returns what is wrong with a host by its report, none where it is well.
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

// Problem returns what is wrong with a need, unless it is well. One that is fulfilled may have a
// unit that did not restart with what was delivered.
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

// NoDocuments names the problem of a host that could not fetch documents.
var NoDocuments = needProblem("config-documents")

// Problem returns what is wrong with a unit, unless it is well.
func (u Unit) Problem() (p Problem, well bool) {
	p = Problem{OfUnit, "unit " + u.Name + " does not run", fmt.Sprintf("%s is %s (%s)", u.Name, u.Active, cmp.Or(u.Text, u.Sub)), u.Active == "failed"}
	if u.Runs() {
		p.Name = "unit " + u.Name + " waits"
	}
	return p, u.Runs() && !u.Waits()
}

// Runs reports whether systemd has started the unit.
func (u Unit) Runs() bool { return u.Active == "active" || u.Active == "reloading" }

// Waits reports whether the unit, started or starting, says that it waits for something.
func (u Unit) Waits() bool {
	return (u.Runs() || u.Active == "activating") && strings.HasPrefix(u.Text, "waiting for ")
}

// Running is the state of a forwarder that carries connections.
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
