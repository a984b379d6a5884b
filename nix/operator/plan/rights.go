package plan

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/nix/operator/compile"
)

// Right is one permission in a cluster: that somebody (Who) may do something (May) to a target
// (What). A plan shows an operator which rights a change adds and removes. So that none is missed,
// every value in a document that can widen access is a right, even if this package has no
// description for it. Examples are:
//
//	user/alice             reach       service/wiki     a service allows a principal
//	anyone                 reach       service/wiki     it is public
//	service/wiki           lead to     192.0.2.7:80     its connections go there
//	node/laptop            act as      user/alice       a host has another's certificate
//	node/forge             fetch       file root/key
//	account www on ursula  act as      service/wiki     the forwarder takes it for one
//	SSH key SHA256:…       enrol as    node/ursula
//	node/forge             provide     cert
//	root CN=… SHA256:…     vouch for   every identity
//	key demo-1:…           sign        every document
type Right struct {
	Who  string `json:"who"`
	May  string `json:"may"`
	What string `json:"what"`
}

func compareRights(a, b Right) int {
	return cmp.Or(cmp.Compare(a.May, b.May), cmp.Compare(a.What, b.What), cmp.Compare(a.Who, b.Who))
}

// fact is a right that documents grant.
type fact struct {
	Right
	// seconds is the duration or limit of the right. For a right without What, a larger value is
	// wider.
	seconds int64
	// because contains rights that imply this one; if they change, this one need not be shown.
	because []Right
	// bounds contains the rights that this one limits.
	bounds []Right
	// endless marks a right that could have an end here but has none.
	endless bool
}

// ever is the number of seconds that stands for a duration without an end.
const ever = math.MaxInt64

// delta collects the rights before and after a change, so that they can be compared.
type delta struct {
	mu   sync.Mutex
	seen map[Right]*extent
}

type extent struct {
	on      [2]int64 // by side; 0 means that the side lacks the right
	because []Right
	endOf   []Right // rights of which this one is the end
	endless [2]bool // by side
}

type side int

const (
	before side = iota
	after
)

func newDelta() *delta { return &delta{seen: map[Right]*extent{}} }

func (d *delta) note(s side, facts []fact) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, f := range facts {
		e := d.seen[f.Right]
		if e == nil {
			e = &extent{}
			d.seen[f.Right] = e
		}
		e.on[s] = max(e.on[s], f.seconds, 1)
		e.endless[s] = e.endless[s] || f.endless
		if strings.HasSuffix(f.May, until) && len(f.bounds) > 0 {
			e.endOf = f.bounds
		}
		for _, r := range f.because {
			if !slices.Contains(e.because, r) {
				e.because = append(e.because, r)
			}
		}
	}
}

// keep records the rights that an unchanged host grants, if they change on other hosts. A service
// that runs on several hosts remains reachable when it leaves one of them.
func (d *delta) keep(docs documents) error {
	facts, _, err := granted(docs)
	if err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, f := range facts {
		if e := d.seen[f.Right]; e != nil {
			for s := range e.on {
				e.on[s] = max(e.on[s], f.seconds, 1)
			}
		}
	}
	return nil
}

// sorted returns the rights that a change opens and closes, without those that follow from the
// change of another right. The map implied marks returned rights that are not shown to people,
// because another right includes them.
func (d *delta) sorted() (opened, closed []Right, implied map[Right]bool) {
	implied = map[Right]bool{}
	pick := func(from, to side) []Right {
		changes := func(r Right) bool {
			e := d.seen[r]
			return e != nil && e.on[to] > e.on[from]
		}
		ends := d.withEnds(to, changes)
		list := []Right{}
		for r, e := range d.seen {
			if changes(r) && !slices.ContainsFunc(e.because, changes) {
				other := ends[r]
				if r.What == "" {
					r.What = amount(r.May, e.on[to])
				}
				list = append(list, r)
				implied[r] = other
			}
		}
		slices.SortFunc(list, compareRights)
		return list
	}
	return pick(before, after), pick(after, before), implied
}

// withEnds returns rights and ends that need not be shown separately. A right that is opened
// follows from its end, unless some host grants the right without an end. An end follows from a
// right that is closed.
func (d *delta) withEnds(to side, changes func(Right) bool) map[Right]bool {
	implied := map[Right]bool{}
	for end, e := range d.seen {
		for _, of := range e.endOf {
			switch {
			case !changes(end) || !changes(of):
			case to == before:
				implied[end] = true
			case !d.seen[of].endless[after]:
				implied[of] = true
			}
		}
	}
	return implied
}

// duration formats a number of seconds for people.
func duration(seconds int64) string {
	if seconds == ever {
		return "ever"
	}
	n, unit := seconds, "second"
	for _, u := range []struct {
		size int64
		name string
	}{{86400, "day"}, {3600, "hour"}, {60, "minute"}} {
		if seconds%u.size == 0 {
			n, unit = seconds/u.size, u.name
			break
		}
	}
	if n != 1 {
		unit += "s"
	}
	return fmt.Sprintf("%d %s", n, unit)
}

// topology records the rights that appear in no document.
func (d *delta) topology(was, is compile.Topology) {
	for s, t := range map[side]compile.Topology{before: was, after: is} {
		var facts []fact
		for name, service := range t.Services {
			// The networks of strangers, and where they must sign in, are in documents.
			if service.Visibility != "public" || len(service.Ingress.From) > 0 || service.Gated() {
				continue
			}
			facts = append(facts, fact{Right: Right{"anyone", "reach", "service/" + name}})
			for host, h := range t.Hosts {
				if slices.Contains(h.Capabilities, "ingress") {
					facts = append(facts, fact{Right: Right{"anyone", "come in through", "host " + host}})
				}
			}
		}
		for name, h := range t.Hosts {
			node := "node/" + name
			facts = append(facts, fact{
				Right:   Right{"account " + h.Instance.String() + " on " + name, "hold", "the keys of " + node},
				because: []Right{join(node)},
			})
		}
		for name, h := range t.Hosts {
			if (was.Hosts[name].Hidden || is.Hosts[name].Hidden) && !h.Hidden {
				facts = append(facts, shownAddress(name))
			}
		}
		d.note(s, facts)
	}
}

// host records the rights that a host's documents grant. A value that no rule explains may have
// kept somebody out. If such a value exists on one side only, its absence counts as a right of the
// other side.
func (d *delta) host(name string, was, is documents) error {
	var granting [2][]fact
	var loose [2]map[string]string
	var kinds [2]map[string]bool
	for s, docs := range []documents{was, is} {
		facts, rest, err := granted(docs)
		if err != nil {
			return fmt.Errorf("host %s: %w", name, err)
		}
		d.note(side(s), facts)
		granting[s], loose[s], kinds[s] = facts, rest, map[string]bool{}
		for kind, raw := range docs {
			kinds[s][kind] = raw.Body != ""
		}
	}
	also, err := covered(was, is)
	if err != nil {
		return fmt.Errorf("host %s: %w", name, err)
	}
	for s, facts := range also {
		d.note(side(s), facts)
		granting[s] = append(granting[s], facts...)
	}
	d.unbounded(granting)
	if err := d.names(name, was, is); err != nil {
		return fmt.Errorf("host %s: %w", name, err)
	}
	if err := d.gates(was, is); err != nil {
		return fmt.Errorf("host %s: %w", name, err)
	}
	if err := d.strangers(name, was, is); err != nil {
		return fmt.Errorf("host %s: %w", name, err)
	}
	for s, rest := range loose {
		other := side(1 - s)
		for path, value := range rest {
			d.note(side(s), []fact{{Right: Right{"node/" + name, "go by", path + " = " + value}}})
			kind, _, _ := strings.Cut(path, " ")
			if _, there := loose[other][path]; !there && kinds[other][kind] {
				d.note(other, []fact{{Right: Right{"node/" + name, "go without", path}}})
			}
		}
	}
	return nil
}

// join returns the right of a host that is added to the cluster.
func join(node string) Right { return Right{node, "join", "the cluster"} }

// granted returns the rights that a host's documents grant. It also returns the values that no rule
// explains, by their paths.
func granted(docs documents) (facts []fact, loose map[string]string, err error) {
	loose = map[string]string{}
	for _, kind := range []string{document.DocManifest, document.DocPolicy} {
		var body map[string]any
		if err := read(docs[kind], &body); err != nil {
			return nil, nil, fmt.Errorf("%s: %w", kind, err)
		}
		if body == nil {
			continue
		}
		w := walk{loose: loose, root: body, doc: kind}
		w.value(kind, nil, nil, body)
		facts = append(facts, w.facts...)
	}
	return facts, loose, nil
}
