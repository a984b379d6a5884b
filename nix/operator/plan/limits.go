package plan

// limits maps each limit to the rights that it bounds. A higher limit permits more, and no limit
// permits most. If only one side of a change has the limit, delta.unbounded handles it.
var limits = map[string]string{
	"connections":    "hold connections at one host, up to",
	"opensPerSecond": "open connections at one host, each second up to",
	"bytesPerSecond": "carry bytes at one host, each second up to",
}

// limit returns a limit on a holder of rights. The argument bounds contains the rights that are
// limited.
func (a at) limit(who string, bounds []Right) []fact {
	n, ok := a.v.(float64)
	may, known := limits[a.path[len(a.path)-1]]
	if !ok || !known {
		a.loosen(a.path, a.v)
		return nil
	}
	return []fact{{Right: Right{Who: who, May: may}, seconds: int64(n), bounds: bounds, because: bounds}}
}

func serviceLimit(a at) []fact {
	service := a.id(a.up[1]["id"])
	return a.limit("callers of "+service, []Right{{a.node(), "act as", service}})
}

func callerLimit(a at) []fact {
	who := a.id(a.up[1]["id"])
	var bounds []Right
	for _, p := range list(object(a.root["forwarder"])["publish"]) {
		for _, x := range list(object(p)["allow"]) {
			if a.id(object(x)["id"]) == who {
				bounds = append(bounds, Right{who, "reach", a.port(object(p))})
			}
		}
	}
	return a.limit(who, bounds)
}

func relayLimit(a at) []fact {
	return a.limit("each host through "+a.node(), []Right{{a.node(), "relay", "connections of other hosts"}})
}

// unbounded records limits that exist only before or only after a change. It records them only if
// the bounded rights exist on the side without the limit.
func (d *delta) unbounded(sides [2][]fact) {
	var has [2]map[Right]bool
	for s, facts := range sides {
		has[s] = map[Right]bool{}
		for _, f := range facts {
			has[s][f.Right] = true
		}
	}
	for s, facts := range sides {
		other := side(1 - s)
		for _, f := range facts {
			if has[other][f.Right] {
				continue
			}
			for _, bounded := range f.bounds {
				if has[other][bounded] {
					d.note(other, []fact{{Right: f.Right, seconds: ever, because: f.because}})
				}
			}
		}
	}
}
