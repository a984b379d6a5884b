package laws

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/florete/florete/nix/operator/plan"
)

// harmless matches places in documents whose values grant nothing, with the reason.
var harmless = map[string]*regexp.Regexp{
	"peers prove who they are, wherever they are": regexp.MustCompile(`/(reach/\S+/endpoints/|providers/\w+/\w+/addresses|forwarder/relays/[\w-]+/addresses)`),
	"loopback listeners look up who calls":        regexp.MustCompile(`^manifest/forwarder/(reach|socks)/\S+/listen$`),
	"the same checks over either transport":       regexp.MustCompile(`^manifest/forwarder/(reach/\S+/|relays/[\w-]+/)?transport$`),
	"a role's name: what it leads to is a right":  regexp.MustCompile(`^manifest/roles/`),
	"whom the CA writes to":                       regexp.MustCompile(`^policy/kinds/tls/contact$`),
	"what people read on a button":                regexp.MustCompile(`^policy/kinds/oidc/(ldap|upstream)/\w+/title$`),
	"whence state comes, read by replicas":        regexp.MustCompile(`^policy/store/from/`),
	"an older process closes what a list denies":  regexp.MustCompile(`^manifest/forwarder/drain$`),
	"as the request has it":                       regexp.MustCompile(`^manifest/needs/\S+/renew/rotate$`),
	"the publishing host decides what is carried": regexp.MustCompile(`^manifest/forwarder/reach/\S+/protocol$`),
	"the publishing host decides what it records": regexp.MustCompile(`^manifest/forwarder/reach/\S+/recorded$`),
	"the same again":                              regexp.MustCompile(`^(manifest/needs/[\w-]+|policy/grants/\S+|policy/kinds/(jwt|ssh|token))/generation$|/staleAfter$`),
	"when, not what":                              regexp.MustCompile(`^policy/rollout/`),
	"members of the store prove who they are":     regexp.MustCompile(`^policy/store/(endpoints/|member/(\w+/called/|cluster/))`),
	"names that stand for a path or a service":    regexp.MustCompile(`^manifest/forwarder/(relay/routes/\S*/(label|next)|reach/\S+/via/\S*/label|(reach|publish)/\S+/opaqueName)$`),
	"how a proxy carries what it lets in anyway":  regexp.MustCompile(`^manifest/forwarder/reach/\S+/ingress/(hsts|maxBody|timeout)$`),
	"how long people stay who may sign in anyway": regexp.MustCompile(`^manifest/forwarder/reach/\S+/gate/session$`),
	"order alone": regexp.MustCompile(`^manifest/needs/[\w-]+/dependsOn/`),
	"an operator's words for the same, not a value": regexp.MustCompile(`^\w+/host$`),
}

// longer matches numbers that grant more as they grow.
var longer = regexp.MustCompile(`/(lifetime|interval|overlap|rotate|refresh|keyLifetime|tokensPerMinute|runtimeRules/(groupings|policies)|until)$|^(manifest|policy)/requests/[^/]+/most$`)

// sequence is the number of a trust bundle.
var sequence = regexp.MustCompile(`,?"spiffe_sequence":[0-9]+`)

// forEver matches lengths of which 0 is the maximum.
var forEver = regexp.MustCompile(`/(rotate|keyLifetime)$`)

// limit matches limits of a service, a caller or a relay, of which the absence is the maximum.
var limit = regexp.MustCompile(`^manifest/forwarder/((publish|limits)/\S+?|relay)/limits/\w+$`)

// unlimited adds the maximum of every limit that a manifest could have and lacks.
func unlimited(host string, body any, lengths map[string]float64) {
	forwarder, _ := body.(map[string]any)["forwarder"].(map[string]any)
	publish, _ := forwarder["publish"].([]any)
	note := func(of ...any) {
		for _, what := range []string{"connections", "opensPerSecond", "bytesPerSecond"} {
			place := strings.TrimSuffix(fmt.Sprintln(of...), "\n")
			lengths[fmt.Sprintf("%s manifest/forwarder/%s/limits/%s", host, strings.ReplaceAll(place, " ", "/"), what)] = math.MaxInt
		}
	}
	if forwarder["relay"] != nil {
		note("relay")
	}
	for _, p := range publish {
		p := p.(map[string]any)
		note("publish", p["id"])
		for _, a := range p["allow"].([]any) {
			note("limits", a.(map[string]any)["id"])
		}
	}
}

// said contains the statements of a document, each with its place. Numbers that may shrink are
// separate.
type said struct {
	seen    map[string]bool
	lengths map[string]float64
}

// more returns the statements in the documents and the topology of a cluster that another cluster
// lacks. Statements begin with the name of the host, so equal documents are skipped.
func more(was, is compiled) (all []string) {
	before := map[string][]said{} // by host
	probes := probesOf(was, is)
	for host, docs := range is.Documents {
		for kind, raw := range docs {
			if had, ok := was.Documents[host][kind]; ok && had.Body == raw.Body {
				continue
			}
			if before[host] == nil {
				before[host] = []said{}
				for kind, raw := range was.Documents[host] {
					before[host] = append(before[host], leaves(host, kind, raw.Body, probes))
				}
			}
			now := leaves(host, kind, raw.Body, probes)
			for s := range now.seen {
				if !slices.ContainsFunc(before[host], func(b said) bool { return b.seen[s] }) {
					all = append(all, s)
				}
			}
			for s, n := range now.lengths {
				had, ok := 0.0, false
				for _, b := range before[host] {
					if n, has := b.lengths[s]; has {
						had, ok = n, true
					}
				}
				if n > had || !ok && n < math.MaxInt {
					all = append(all, s)
				}
			}
		}
	}
	seen := beside(was)
	for s := range beside(is) {
		if !seen[s] {
			all = append(all, s)
		}
	}
	slices.Sort(all)
	return all
}

// beside returns the statements of a topology that are in none of its documents.
func beside(c compiled) map[string]bool {
	seen := map[string]bool{}
	for name, h := range c.Topology.Hosts {
		seen[name+" is "+string(h.Instance)] = true
		if !h.Hidden {
			seen["others have addresses of "+name] = true
		}
	}
	for name, s := range c.Topology.Services {
		if s.Visibility != "public" {
			continue
		}
		seen[name+" is public"] = true
		for host, h := range c.Topology.Hosts {
			if slices.Contains(h.Capabilities, "ingress") {
				seen["strangers at "+host] = true
			}
		}
	}
	return seen
}

// leaves returns the statements of a document of a host. The strangers of probes stand for all
// others.
func leaves(host, kind, text string, probes strangers) said {
	seen, lengths := map[string]bool{}, map[string]float64{}
	var body any
	if err := json.Unmarshal([]byte(text), &body); err != nil {
		panic(err)
	}
	for _, id := range without(body, "user") {
		seen[host+" any account answers for "+id] = true
	}
	for _, id := range without(body, "identity") {
		seen[host+" callers write what they like to "+id] = true
	}
	for _, id := range without(body, "record") {
		seen[host+" sessions go unrecorded at "+id] = true
	}
	for id, n := range readable(body) {
		lengths[host+" readers are missing at "+id] = -n
	}
	for _, what := range endless(body) {
		seen[host+" for good "+what] = true
	}
	unlimited(host, body, lengths)
	neverEnding(host, body, lengths)
	needs, _ := body.(map[string]any)["needs"].([]any)
	for _, n := range needs {
		if n := n.(map[string]any); n["renew"] == nil || n["renew"].(map[string]any)["interval"] == nil { // never fetched again
			lengths[fmt.Sprintf("%s %s/needs/%v/renew/interval", host, kind, n["id"])] = math.MaxInt
		}
	}
	unrestricted(body)
	entered(host, body, probes, seen, lengths)
	spread(kind, body, func(place string, v any) {
		if isHarmless(place) {
			return
		}
		where := host + " " + place
		switch {
		case limit.MatchString(place):
			lengths[where] = v.(float64)
		case strings.HasPrefix(place, "manifest/forwarder/limits/"): // of whichever user
		case longer.MatchString(place):
			lengths[where] = v.(float64)
			if v == 0.0 && forEver.MatchString(place) {
				lengths[where] = math.MaxInt
			}
		case strings.HasSuffix(place, "/record/days"), strings.HasSuffix(place, "/request/length"):
			lengths[where] = -v.(float64)
		case strings.HasSuffix(place, "/mode"):
			for i, digit := range v.(string) {
				for bit := range 3 {
					if (digit-'0')>>bit&1 == 1 {
						seen[fmt.Sprintf("%s %d %d", where, i, bit)] = true
					}
				}
			}
		case strings.HasSuffix(place, "/accessLog") && v == "full": // also grants the sampled log
			seen[where+" = sampled"], seen[where+" = full"] = true, true
		case strings.HasSuffix(place, "/access") && v == "write": // also grants reading
			seen[where+" = read"], seen[where+" = write"] = true, true
		case strings.HasSuffix(place, "/request/two") && v == false: // also true for a reader that accepts two
		case strings.Contains(place, "/onChange/"): // whichever need restarts the unit
			seen[fmt.Sprintf("%s restarts %v", host, v)] = true
		default:
			// The sequence number of a bundle with the same keys grants nothing.
			seen[sequence.ReplaceAllString(fmt.Sprintf("%s = %v", where, v), "")] = true
		}
	})
	return said{seen, lengths}
}

// neverEnding adds the rights without an end that could have one.
func neverEnding(host string, body any, lengths map[string]float64) {
	object, _ := body.(map[string]any)
	forwarder, _ := object["forwarder"].(map[string]any)
	note := func(v any, where string) {
		if e, _ := v.(map[string]any); e["until"] == nil {
			lengths[fmt.Sprintf("%s %s/%v/until", host, where, e["id"])] = math.MaxInt
		}
	}
	for _, p := range list(forwarder["publish"]) {
		for _, a := range list(p.(map[string]any)["allow"]) {
			note(a, fmt.Sprintf("manifest/forwarder/publish/%v/allow", p.(map[string]any)["id"]))
		}
	}
	for _, of := range []string{"operators", "cache"} {
		for _, o := range list(object[of]) {
			note(o, "policy/"+of)
		}
	}
}

// unrestricted adds the maximum of every unrestricted attribute of clients of the issuer.
func unrestricted(body any) {
	o := body.(map[string]any)
	needs, _ := o["needs"].([]any)
	grants, _ := o["grants"].([]any)
	for _, n := range slices.Concat(needs, grants) {
		if n := n.(map[string]any); n["kind"] == "oidc" {
			request := n["request"].(map[string]any)
			if request["allowedGroups"] == nil {
				request["allowedGroups"] = []any{"all people"}
			}
			if request["groups"] == nil {
				request["groups"] = "the groups of the issuer"
			}
			if request["scopes"] == nil {
				request["scopes"] = []any{"openid", "email", "groups", "offline_access", "profile"}
			}
		}
	}
}

// endless returns the callers that a manifest allows without an end.
func endless(body any) (who []string) {
	forwarder, _ := body.(map[string]any)["forwarder"].(map[string]any)
	publish, _ := forwarder["publish"].([]any)
	for _, p := range publish {
		p := p.(map[string]any)
		for _, a := range p["allow"].([]any) {
			if a := a.(map[string]any); a["until"] == nil {
				who = append(who, fmt.Sprint(a["id"], " to ", p["id"]))
			}
		}
	}
	return who
}

// without returns the services that a manifest publishes without an attribute.
func without(body any, attribute string) (ids []string) {
	forwarder, _ := body.(map[string]any)["forwarder"].(map[string]any)
	publish, _ := forwarder["publish"].([]any)
	for _, p := range publish {
		if p := p.(map[string]any); p[attribute] == nil {
			ids = append(ids, fmt.Sprint(p["id"]))
		}
	}
	return ids
}

// readable returns the number of people who can read the recordings of sessions, by service.
func readable(body any) map[string]float64 {
	count := map[string]float64{}
	forwarder, _ := body.(map[string]any)["forwarder"].(map[string]any)
	for _, p := range list(forwarder["publish"]) {
		p := p.(map[string]any)
		if record, ok := p["record"].(map[string]any); ok {
			count[fmt.Sprint(p["id"])] = float64(len(list(record["recipients"])))
		}
	}
	return count
}

// harmlessPlaces remembers which places match an expression of harmless: thousands of documents have
// the same places.
var harmlessPlaces = map[string]bool{}

func isHarmless(place string) bool {
	is, known := harmlessPlaces[place]
	if !known {
		for _, re := range harmless {
			is = is || re.MatchString(place)
		}
		harmlessPlaces[place] = is
	}
	return is
}

// spread calls leaf for every value without parts. Elements of lists are identified by their names,
// not by their position.
func spread(place string, v any, leaf func(string, any)) {
	switch v := v.(type) {
	case map[string]any:
		if len(v) == 0 {
			leaf(place, "{}")
		}
		for key, value := range v {
			spread(place+"/"+key, value, leaf)
		}
	case []any:
		for _, e := range v {
			key := fmt.Sprint(e)
			if o, ok := e.(map[string]any); ok {
				key = strings.ReplaceAll(fmt.Sprintf("%v%v%v%v", o["id"], o["caller"], o["need"], o["unit"]), "<nil>", "")
			}
			spread(place+"/"+key, e, leaf)
		}
	default:
		leaf(place, v)
	}
}

func hash(text string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(text))
	return h.Sum64()
}

// TestPlanWidensWhenAnythingMore checks that exit status 0 of a plan means that nobody may do, read
// or be more: the documents say the same as before, or less. It also checks that such a plan opens
// nothing.
func TestPlanWidensWhenAnythingMore(t *testing.T) {
	if testing.Short() {
		t.Skip("left out by -short: it takes long")
	}
	type try struct {
		edit          string
		before, after *cluster
		seed          uint64
	}
	var tries []try
	var all []json.RawMessage
	names := []string{}
	for name := range edits {
		names = append(names, name)
	}
	slices.Sort(names)
	if *edit != "" {
		names = []string{*edit}
	}
	// Each cluster gets the edits that have not been applied for the longest time.
	next := slices.Clone(names)
	for i := range (*count + 1) / 2 {
		s := *seed + uint64(i)
		c := generator{rand.New(rand.NewPCG(s, 1))}.cluster()
		all = append(all, raw(c))
		tries = append(tries, try{"", nil, c, s})
		left := 12
		for _, name := range slices.Clone(next) {
			d := c.clone()
			g := generator{rand.New(rand.NewPCG(s, hash(name)))}
			if left == 0 || !edits[name](g, d) {
				continue
			}
			left--
			next = append(slices.DeleteFunc(next, func(n string) bool { return n == name }), name)
			all = append(all, raw(d))
			tries = append(tries, try{name, c, d, s})
		}
	}
	got := tryAll(t, "nix-instantiate", all)
	var was compiled
	wider, same, faulty := 0, 0, 0
	for i, try := range tries {
		switch {
		case try.before == nil:
			was = got[i]
			continue
		case was.Report != "" || got[i].Report != "":
			faulty++
			continue
		}
		p, err := plan.Compare(was.snapshot(), got[i].snapshot())
		if err != nil {
			t.Fatal(err)
		}
		more := more(was, got[i])
		if len(more) > 0 {
			wider++
		} else {
			same++
		}
		if p.Widens != (len(more) > 0) {
			t.Errorf("-seed %d -topologies 1 -edit %q: the plan opens %v, the documents say more: %v", try.seed, try.edit, p.Opened, more[:min(5, len(more))])
		}
	}
	t.Logf("%d edits say more, %d do not, %d have faults", wider, same, faulty)
	if *edit != "" {
		return
	}
	for _, name := range names {
		if !slices.ContainsFunc(tries, func(t try) bool { return t.edit == name }) {
			t.Errorf("%s: no cluster has what it changes", name)
		}
	}
	if wider < *count || same < *count/4 || faulty > wider+same {
		t.Errorf("%d edits say more, %d do not, %d have faults", wider, same, faulty)
	}
}
