package rollout

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostdir"
	"github.com/florete/florete/internal/hostreport"
	"github.com/florete/florete/internal/unixtime"
)

const again = 31

func budget(most int, hosts ...string) document.Budget {
	return document.Budget{Tags: []string{"etcd"}, Most: most, Hosts: hosts}
}

// newBudgeted is a rollout to the canary, then to a and b, then to c, with budgets.
func newBudgeted(t *testing.T, bridged bool, budgets ...document.Budget) *fleet {
	f := newFleet(t, bridged)
	plan := document.Rollout{Waves: [][]string{{"canary"}, {"a", "b"}, {"c"}}, Healthy: 60, Within: 600, Budgets: budgets}
	f.state = New(next, former, plan, bridged, f.now)
	f.state.Again = again
	return f
}

func (f *fleet) stages(want string) {
	f.t.Helper()
	var all []string
	for _, name := range slices.Sorted(maps.Keys(f.state.Stages)) {
		all = append(all, name+"="+string(f.state.Stages[name]))
	}
	if got := fmt.Sprint(all); got != want {
		f.t.Fatalf("hosts are offered %s, want %s", got, want)
	}
}

// TestBudget checks that of a wave, one host after the other is offered the version, and that hosts
// go back in the same way.
func TestBudget(t *testing.T) {
	f := newBudgeted(t, false, budget(1, "a", "b", "c"))
	f.report("canary", next)
	f.after(70 * time.Second)
	f.stages("[a=version]")
	f.after(5 * time.Second)
	f.want(Active, 2, "b: waits for the budget of at most 1 at once of hosts with tags etcd: a: has not put serial 30 in force")
	f.report("a", next)
	f.after(5 * time.Second)
	f.stages("[a=version b=version]")
	f.report("b", next)
	f.after(80 * time.Second)
	f.stages("[a=version b=version c=version]")
	f.report("c", next, failed)
	f.after(5 * time.Second)
	f.want(Returning, 3, "c: unit wiki.service does not run")
	if stage, bridged := f.state.Stage("canary", 1, ""); stage != StageBack || !bridged {
		t.Errorf("the canary has no budget, and is offered %q, %t", stage, bridged)
	}
	f.after(5 * time.Second)
	f.stages("[a=version b=version c=back]")
	f.after(time.Hour)
	f.want(Returning, 3, "c: unit wiki.service does not run")
	f.report("c", again)
	f.after(5 * time.Second)
	f.stages("[a=back b=version c=back]")
	f.report("a", again)
	f.after(5 * time.Second)
	f.want(Stopped, 3, "c: unit wiki.service does not run")
}

// TestBudgetOfUnhealthy checks that a host that was down before counts, that it is itself offered
// the version, and that a rollout that cannot go on stops and says why.
func TestBudgetOfUnhealthy(t *testing.T) {
	f := newBudgeted(t, false, budget(1, "a", "b"))
	for i := range f.hosts {
		if f.hosts[i].Name == "b" {
			f.hosts[i].Before = Problems{silent: false}
		}
	}
	f.reports["b"] = hostreport.Kept{}
	f.report("canary", next)
	f.after(75*time.Second, "b")
	f.stages("[b=version]")
	f.after(11*time.Minute, "b")
	f.want(Stopped, 2, "for 10m0s: a: waits for the budget of at most 1 at once of hosts with tags etcd: b: has not put serial 30 in force")
}

// TestBudgetOfNewHost checks that a host that has never reported, and which the former version does
// not have, prevents no other host from being changed.
func TestBudgetOfNewHost(t *testing.T) {
	f := newBudgeted(t, false, budget(1, "a", "b"))
	for i := range f.hosts {
		if f.hosts[i].Name == "b" {
			f.hosts[i].Before, f.hosts[i].New = Problems{silent: false}, true
		}
	}
	delete(f.reports, "b")
	f.report("canary", next)
	f.after(75 * time.Second)
	f.stages("[a=version]")
	f.report("a", next)
	f.after(70 * time.Second)
	f.stages("[a=version b=version]")
	f.want(Active, 3, "")
}

// TestBudgetOfPolicies checks that provider hosts receive their policies under their budget, before
// the first wave and after the last.
func TestBudgetOfPolicies(t *testing.T) {
	f := newBudgeted(t, true, budget(1, "c", "canary"))
	f.hosts = slices.DeleteFunc(f.hosts, func(h Host) bool { return h.Name == "provider" })
	f.hosts = append(f.hosts, Host{Name: "canary", Serial: bridge}, Host{Name: "c", Serial: bridge})
	documents := func(host string, manifest, policy int64) {
		f.report(host, manifest, func(r *hostreport.Report) { r.Documents[1].Serial = policy })
	}
	for _, host := range []string{"c", "canary"} {
		documents(host, former, former)
	}
	f.after(10 * time.Second)
	f.want(Active, 0, "canary: waits for the budget")
	f.stages("[c=policy]")
	documents("c", former, bridge)
	f.after(5 * time.Second)
	f.stages("[c=policy canary=policy]")
	documents("canary", former, bridge)
	f.after(10 * time.Second)
	f.stages("[c=policy canary=version]")
	documents("canary", next, bridge)
	f.after(70 * time.Second)
	f.report("a", next)
	f.report("b", next)
	f.after(75 * time.Second)
	f.stages("[c=version canary=version]")
	documents("c", next, bridge)
	f.after(80 * time.Second)
	f.stages("[c=whole canary=version]")
	if stage, bridged := f.state.Stage("a", 2, ""); stage != StageWhole || bridged {
		t.Errorf("a host without a budget is offered %q, %t", stage, bridged)
	}
	documents("c", next, next)
	f.after(10 * time.Second)
	f.want(Active, 3, "canary: has not put serial 30 in force")
	documents("canary", next, next)
	f.after(5 * time.Second)
	f.want(Done, 3, "")
}

// TestPoliciesGoBackLast checks that provider hosts keep the policies of both versions until all
// other hosts in budgets have been offered the former documents.
func TestPoliciesGoBackLast(t *testing.T) {
	f := newBudgeted(t, true, budget(3, "a", "c", "canary"))
	f.hosts = append(f.hosts, Host{Name: "canary", Serial: bridge}, Host{Name: "c", Serial: bridge})
	f.state.Wave = 2
	f.state.Stages = map[string]Stage{"a": StageVersion, "c": StagePolicy, "canary": StageVersion}
	f.state = f.state.Stop(Aborted, "by a test", f.now)
	f.after(time.Second)
	f.stages("[a=back c=policy canary=version]")
	f.after(time.Second)
	f.want(Aborted, 2, "by a test")
}

// world is a rollout of hosts that act at random, and the truth about each of them.
type world struct {
	*testing.T
	rand     *rand.Rand
	now      time.Time
	state    State
	hosts    []Host
	reports  map[string]hostreport.Kept
	policies map[string]bool // of which hosts there is one for both versions
	has      map[string]offered
	offers   map[string]offered // the last ones
	open     map[string]bool    // offers that no report has confirmed
	broken   map[string]bool
	claimed  map[string]time.Time // until when an operator deploys a host
	calm     bool                 // nothing breaks, and nobody acts
	log      []string
}

// offered are the serials of documents.
type offered struct{ manifest, policy int64 }

func (w *world) offer(h Host) offered {
	stage, bridged := w.state.Stage(h.Name, h.Wave, "")
	var is offered
	switch {
	case w.state.Status == Done:
		is = offered{next, next}
	case !w.state.AtWork():
		is = offered{again, again}
	default:
		is = map[Stage]offered{StageFormer: {former, former}, StagePolicy: {former, former}, StageVersion: {next, next}, StageWhole: {next, next}, StageBack: {again, again}}[stage]
		if bridged && w.policies[h.Name] {
			is.policy = bridge
		}
	}
	if !w.policies[h.Name] {
		is.policy = 0
	}
	return is
}

// observe compares the offers to those before, and checks every budget.
func (w *world) observe() {
	w.Helper()
	for _, h := range w.hosts {
		if h.Wave == 0 {
			continue
		}
		is := w.offer(h)
		was := w.offers[h.Name]
		if is == was {
			continue
		}
		if is.policy != 0 && is.policy < was.policy || is.manifest < was.manifest {
			w.Fatalf("%s is offered %v after %v\n%s", h.Name, is, was, w.text())
		}
		w.log = append(w.log, fmt.Sprintf("%s %s is offered %v, before %v", w.now.Format(time.TimeOnly), h.Name, is, was))
		w.offers[h.Name] = is
		// The former documents under another serial change nothing.
		if !(was.manifest == former && was.policy != bridge && is.manifest == again) {
			w.open[h.Name] = true
		}
	}
	for _, b := range w.state.Budgets {
		n := 0
		for _, name := range b.Hosts {
			if w.open[name] || w.now.Before(w.claimed[name]) {
				n++
			}
		}
		if n > b.Most {
			w.Fatalf("%d of %v are being changed, %v\n%s", n, b.Hosts, b, w.text())
		}
	}
}

func (w *world) text() string {
	state, _ := json.Marshal(w.state)
	text := string(state)
	for _, line := range w.log[max(0, len(w.log)-40):] {
		text += "\n" + line
	}
	return text
}

// report records the report of a host.
func (w *world) report(name string) {
	has := w.has[name]
	r := hostreport.Report{Format: document.NewestFormat, Documents: []document.Reported{{Kind: document.DocManifest, Serial: has.manifest}},
		Forwarder: &hostreport.Forwarder{State: "running"}}
	if has.policy != 0 {
		r.Documents = append(r.Documents, document.Reported{Kind: document.DocPolicy, Serial: has.policy})
	}
	trial := !w.calm && w.rand.IntN(5) == 0
	if trial {
		r.Pending = &hostdir.Change{Documents: r.Documents}
	}
	if w.broken[name] {
		r.Units = []hostreport.Unit{{Name: "etcd.service", Active: "failed"}}
	}
	b, err := json.Marshal(r)
	if err != nil {
		w.Fatal(err)
	}
	w.reports[name] = hostreport.Kept{Received: unixtime.Of(w.now), Report: b}
	w.log = append(w.log, fmt.Sprintf("%s %s reports %v, trial %t, broken %t", w.now.Format(time.TimeOnly), name, has, trial, w.broken[name]))
	if has == w.offers[name] && !trial && !w.broken[name] {
		delete(w.open, name)
	}
}

func (w *world) step() {
	before, _ := json.Marshal(w.state)
	s := w.state.Step(w.now, w.hosts, func(host string) hostreport.Kept { return w.reports[host] })
	if after, _ := json.Marshal(w.state); string(after) != string(before) {
		w.Fatal("a step changed the state that it began with")
	}
	if w.rand.IntN(8) == 0 {
		return // the provider died before it wrote the step
	}
	b, err := json.Marshal(s)
	if err == nil {
		w.state = State{}
		err = json.Unmarshal(b, &w.state)
	}
	if err != nil {
		w.Fatal(err)
	}
}

func newWorld(t *testing.T, seed uint64) *world {
	w := &world{T: t, rand: rand.New(rand.NewPCG(seed, 75)), now: time.Date(2026, 7, 15, 12, 0, 0, 0, time.UTC), reports: map[string]hostreport.Kept{},
		policies: map[string]bool{}, has: map[string]offered{}, offers: map[string]offered{}, open: map[string]bool{}, broken: map[string]bool{}, claimed: map[string]time.Time{}}
	var names []string
	for i := range 3 + w.rand.IntN(5) {
		names = append(names, fmt.Sprintf("h%d", i))
	}
	waves := make([][]string, 1+w.rand.IntN(3))
	for _, name := range names {
		n := w.rand.IntN(len(waves))
		waves[n] = append(waves[n], name)
	}
	plan := document.Rollout{Waves: waves, Healthy: 20, Within: 300}
	for range 1 + w.rand.IntN(3) {
		var of []string
		for _, name := range names {
			if w.rand.IntN(3) > 0 {
				of = append(of, name)
			}
		}
		if len(of) > 0 {
			plan.Budgets = append(plan.Budgets, document.Budget{Tags: []string{"x"}, Most: 1 + w.rand.IntN(2), Hosts: of})
		}
	}
	bridged := false
	for i, wave := range waves {
		for _, name := range wave {
			w.hosts = append(w.hosts, Host{Name: name, Wave: i + 1, Serial: next})
		}
	}
	for _, name := range names {
		if w.rand.IntN(3) == 0 {
			bridged, w.policies[name] = true, true
			w.hosts = append(w.hosts, Host{Name: name, Serial: bridge})
		}
	}
	w.state = New(next, former, plan, bridged, w.now)
	w.state.Again = again
	for _, name := range names {
		is := offered{manifest: former}
		if w.policies[name] {
			is.policy = former
		}
		w.has[name], w.offers[name] = is, is
		w.report(name)
	}
	clear(w.open)
	return w
}

// TestBudgetsHold checks for random clusters, and whatever happens in whatever order, that at no
// time more hosts are between an offer and its confirmation than each budget permits, that no
// serial goes back, and that the rollout ends once all hosts are healthy.
func TestBudgetsHold(t *testing.T) {
	seeds := uint64(100)
	if testing.Short() {
		seeds = 40
	}
	ends := map[Status]int{}
	for seed := range seeds {
		w := newWorld(t, seed)
		w.calm = seed%4 == 0
		for n := 0; w.state.AtWork() && n < 4000; n++ {
			w.now = w.now.Add(2 * time.Second)
			names := slices.Sorted(maps.Keys(w.has))
			name := names[w.rand.IntN(len(names))]
			switch at := w.rand.IntN(40); {
			case w.calm || n > 1000:
				clear(w.broken)
				w.has[name] = w.offers[name]
				w.report(name)
				if w.state.Status == Paused {
					w.state = w.state.Resume(w.now)
				}
			case at < 12:
				w.has[name] = w.offers[name]
			case at < 30:
				w.report(name)
			case at == 30:
				w.broken[name] = w.rand.IntN(4) == 0
			case at == 31:
				clear(w.broken)
			case at == 32 && w.state.Status == Active:
				w.state = w.state.Pause("by a test")
			case at <= 34 && w.state.Status == Paused:
				w.state = w.state.Resume(w.now)
			case at == 35 && w.rand.IntN(10) == 0:
				w.state = w.state.Stop(Aborted, "by a test", w.now)
			case at == 37:
				until := w.now.Add(time.Duration(w.rand.IntN(60)) * time.Second).Truncate(time.Second)
				claim := Claim{By: fmt.Sprint("user/", w.rand.IntN(2)), Until: unixtime.Of(until)}
				s, waits := w.state.Claim(name, claim, nil, w.now, w.hosts, func(host string) hostreport.Kept { return w.reports[host] })
				if w.state = s; waits == "" {
					w.claimed[name] = until
				}
			case at == 38:
				w.state = w.state.Release(name, w.now)
				delete(w.claimed, name)
			case at == 36 && w.rand.IntN(20) == 0:
				w.now = w.now.Add(20 * time.Minute) // nobody reports
			}
			w.observe()
			w.step()
			w.observe()
		}
		if w.state.AtWork() {
			t.Fatalf("seed %d: it does not end: %s", seed, w.text())
		}
		if w.calm && w.state.Status != Done {
			t.Fatalf("seed %d: %s", seed, w.text())
		}
		ends[w.state.Status]++
	}
	for _, s := range []Status{Done, Stopped, Aborted} {
		if ends[s] == 0 {
			t.Errorf("no rollout is %s: %v", s, ends)
		}
	}
}

// TestClaim checks that hosts that are deployed while no rollout is in progress obey the budgets of
// the version in force, and that a rollout waits for them.
func TestClaim(t *testing.T) {
	budgets := []document.Budget{budget(1, "a", "b", "c")}
	f := newFleet(t, false)
	f.state = State{Serial: former, Status: Done}
	report := func(host string) hostreport.Kept { return f.reports[host] }
	claim := func(host, by, want string) {
		t.Helper()
		s, waits := f.state.Claim(host, Claim{By: by, Until: unixtime.Of(f.now.Add(5 * time.Minute))}, budgets, f.now, nil, report)
		if waits != want {
			t.Fatalf("%s: %q, want %q", host, waits, want)
		}
		f.state = s
	}
	claim("a", "user/alice", "")
	claim("a", "user/alice", "")
	claim("a", "user/bob", "a: is being deployed by user/alice")
	claim("canary", "user/bob", "")
	const full = "b: waits for the budget of at most 1 at once of hosts with tags etcd: a: "
	claim("b", "user/bob", full+"is being deployed by user/alice")
	claims := f.state.Claims
	g := newBudgeted(t, false, budgets...)
	g.state.Claims = claims
	g.report("canary", next)
	g.after(75 * time.Second)
	g.stages("[a=version]") // which is being changed anyway
	g.report("a", next)
	g.after(3 * time.Minute)
	g.want(Active, 2, full+"is being deployed by user/alice")
	g.after(2 * time.Minute) // the claim has expired
	g.stages("[a=version b=version]")

	f.report("a", former, waiting)
	f.state = f.state.Release("a", f.now)
	claim("b", "user/bob", full+"need cert-node is not fulfilled")
	f.report("a", former)
	claim("b", "user/bob", "")
	for _, by := range []string{"user/alice", "user/bob"} { // each after the claim before has expired
		f.now = f.now.Add(5 * time.Minute)
		claim("c", by, "")
		if len(f.state.Claims) != 1 || f.state.Claims["c"].By != by {
			t.Errorf("claims are %v, want that of %s alone", f.state.Claims, by)
		}
	}
}
