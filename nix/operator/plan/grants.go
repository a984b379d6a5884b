package plan

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"github.com/florete/florete/internal/document"
)

func one(r Right, because ...Right) []fact { return []fact{{Right: r, because: because}} }

func cluster(a at) []fact { return one(Right{"every host", "belong to", "cluster " + shown(a.v)}) }

func trustDomain(a at) []fact {
	return one(Right{"every identity", "belong to", "trust domain " + shown(a.v)})
}

func root(a at) (facts []fact) {
	for _, name := range certificates(text(a.v)) {
		facts = append(facts, fact{Right: Right{"root " + name, "vouch for", "every identity"}})
	}
	return facts
}

func key(a at) []fact {
	r := Right{"key " + text(a.v), "sign", "every document"}
	if n, err := strconv.Atoi(shown(a.up[0]["threshold"])); err == nil {
		r.What = fmt.Sprintf("every document, with %d of the other keys", n-1)
	}
	return one(r)
}

func enrol(a at) []fact {
	node := a.id(a.up[0]["id"])
	return append(one(Right{"SSH key " + fingerprint(text(a.v)), "enrol as", node}, join(node)), fact{Right: join(node)})
}

func admitted(a at) []fact {
	node := a.id(a.up[0]["id"])
	return append(one(Right{"a device that an operator admits", "enrol as", node}, join(node)), fact{Right: join(node)})
}

// requested returns the rights that a need includes.
func (a at) requested() (rights []Right) {
	need := a.up[len(a.up)-2]
	request := at{&walk{root: a.root, loose: map[string]string{}}, nil, nil, need["request"]}
	for _, f := range request.request(a.node(), need["kind"]) {
		rights = append(append(rights, f.Right), f.because...)
	}
	return rights
}

// files returns the rights to read, change or run a file that a need delivers.
func files(a at) (facts []fact) {
	file, deliver := a.up[0], a.up[2]
	need := a.up[len(a.up)-2]
	owner, from := shown(deliver["owner"]), shown(file["value"])
	what := shown(need["id"]) + "/" + a.path[len(a.path)-2] + " (" + from + ")"
	mode, err := strconv.ParseUint(shown(a.v), 8, 32)
	if err != nil {
		mode = 0o777
	}
	for _, who := range []struct {
		name  string
		shift int
		usual bool // not mentioned separately from the need
	}{
		{"account " + owner, 6, true},
		{"group " + owner, 3, true},
		{"every account", 0, readable(need["kind"], from)},
	} {
		name := who.name + " on " + a.host()
		if strings.HasSuffix(who.name, " ") {
			name = a.node() + "'s own " + who.name[:len(who.name)-1]
		}
		for bit, may := range map[uint64]string{4: "read", 2: "change", 1: "run"} {
			if mode>>who.shift&bit == 0 {
				continue
			}
			f := fact{Right: Right{name, may, what}}
			if who.usual && may == "read" {
				f.because = a.requested()
			}
			facts = append(facts, f)
		}
	}
	return facts
}

// owner returns the right of the owner of a need's files. The rights to the files include this
// right, so it is separate only if the need names no files.
func owner(a at) []fact {
	if len(object(a.up[0]["files"])) > 0 || a.v == "" {
		return nil
	}
	return one(Right{"account " + shown(a.v) + " on " + a.host(), "own", "what comes of " + a.id(a.up[1]["id"])})
}

// renewal returns how long a host may continue to use a secret without fetching it again.
func renewal(a at) []fact {
	renew := object(a.v)
	every, ok := renew["interval"].(float64)
	if rotate, rotates := renew["rotate"].(float64); rotates && (!ok || rotate < every) {
		every, ok = rotate, true
	}
	switch {
	case renew["atPercent"] != nil:
		return nil
	case !ok || every <= 0:
		every = ever
	}
	return []fact{{Right: Right{Who: a.node(), May: "keep " + a.id(a.up[0]["id"]) + " without asking again for"}, seconds: seconds(every), because: a.requested()}}
}

// port returns the service of an entry of the forwarder. If the service has several ports, port
// returns the port of the entry.
func (a at) port(entry map[string]any) string { return portOf(a.id(entry["id"]), entry) }

func portOf(service string, entry map[string]any) string {
	if name := shown(entry["port"]); name != "" {
		return service + ":" + name
	}
	return service
}

// upstream returns the rights about the destination of a service's connections, and about the owner
// of that destination.
func upstream(a at) []fact {
	p := a.up[0]
	id, service, to := a.id(p["id"]), a.port(p), shown(a.v)
	if here(to) {
		to += " of its host"
	}
	if protocol := shown(p["protocol"]); protocol != "" {
		to = protocol + " " + to
	}
	who := "every account on " + a.host()
	if p["user"] != nil && p["user"] != "" {
		who = "account " + shown(p["user"]) + " on " + a.host()
	}
	facts := []fact{
		{Right: Right{service, "lead to", to}},
		{Right: Right{who, "answer for", service}, because: []Right{{a.node(), "act as", id}}},
	}
	// Callers can then set the headers that the forwarder would otherwise set.
	if p["identity"] == nil {
		facts = append(facts, fact{Right: Right{"callers of " + service, "pass unnamed on", a.host()}, because: []Right{{a.node(), "act as", id}, {service, "lead to", to}}})
	}
	return facts
}

// identity returns the rights about how an upstream learns its callers, or whether it trusts the
// identity that a caller states.
func identity(a at) []fact {
	p := a.up[0]
	return one(Right{a.port(p), "learn callers from", "the forwarder, by " + shown(a.v)}, Right{a.node(), "act as", a.id(p["id"])})
}

func here(upstream string) bool {
	if strings.HasPrefix(upstream, "unix:") || strings.HasPrefix(upstream, "localhost:") {
		return true
	}
	to, err := netip.ParseAddrPort(upstream)
	return err == nil && (to.Addr().IsLoopback() || to.Addr().IsUnspecified())
}

func allow(a at) []fact {
	who := a.id(a.v)
	if print := shown(a.up[0]["fingerprint"]); print != "" {
		who += " with certificate " + print
	}
	return a.endless(one(Right{who, "reach", a.port(a.up[1])}))
}

// operator returns the rights of an identity at a config provider. The right to write includes the
// right to read.
func operator(a at) []fact {
	who := a.id(a.up[0]["id"])
	// Access to the service may have an end, which then ends reading.
	facts := one(Right{who, "read at", "the config provider of " + a.host()}, Right{who, "reach", "service/" + a.host() + "/florete-control"})
	if a.v != string(document.AccessRead) {
		facts = append(facts, one(Right{who, "publish at", "the config provider of " + a.host()})...)
	}
	return a.endless(facts)
}

// cacheAccess returns the rights of an identity at the binary cache of a provider host.
func cacheAccess(a at) []fact {
	who := a.id(a.up[0]["id"])
	facts := one(Right{who, "read at", "the binary cache of " + a.host()}, Right{who, "reach", "service/" + a.host() + "/florete-cache"})
	if a.v != string(document.AccessRead) {
		facts = append(facts, one(Right{who, "add paths to", "the binary cache of " + a.host()})...)
	}
	return a.endless(facts)
}

// account returns the right of a Unix account to act as an identity of the host. If the value is a
// string, it is the name of the account.
func account(a at, v any) Right {
	who := "account " + shown(v)
	if _, uid := v.(float64); uid {
		who = "uid " + shown(v)
	}
	return Right{who + " on " + a.host(), "act as", a.id(a.up[0]["id"])}
}

// unit returns the right of a systemd unit to act as an identity of the host.
func unit(a at, v any) Right {
	return Right{shown(v) + " on " + a.host(), "act as", a.id(a.up[0]["id"])}
}

// socks returns the rights about a SOCKS5 listener. Through the listener an account can select any
// of its identities, not only the first.
func socks(a at) []fact {
	f := fact{Right: Right{a.id(a.v) + " on " + a.host(), "be chosen at", "a SOCKS5 listener"}, because: []Right{a.holds(a.v)}}
	for _, c := range list(object(a.root["forwarder"])["callers"]) {
		caller := object(c)
		for _, v := range append(list(caller["users"]), list(caller["uids"])...) {
			if caller["id"] == a.v {
				of := a
				of.up = []map[string]any{caller}
				f.because = append(f.because, account(of, v))
			}
		}
		for _, v := range list(caller["units"]) {
			if caller["id"] == a.v {
				of := a
				of.up = []map[string]any{caller}
				f.because = append(f.because, unit(of, v))
			}
		}
	}
	return []fact{f}
}
