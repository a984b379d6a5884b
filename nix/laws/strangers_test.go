package laws

import (
	"encoding/json"
	"fmt"
	"math"
	"net/netip"
	"regexp"
	"slices"

	"github.com/florete/florete/internal/document"
)

// strangers lists callers without an identity that stand for all others: one in each part of the
// networks that documents name, and the invalid address for anyone else. Likewise for the server
// names that they give, and the paths that they request.
type strangers struct {
	addresses    []netip.Addr
	names, paths []string
}

var (
	networkInText = regexp.MustCompile(`"([0-9a-f:.]+/[0-9]+)"`)
	namesInText   = regexp.MustCompile(`"serverNames":\[([^]]*)\]`)
	nameInText    = regexp.MustCompile(`"([^"]+)"`)
	pathInText    = regexp.MustCompile(`"path":"([^"]*)"`)
)

// probesOf returns the strangers that the documents of two clusters tell apart.
func probesOf(both ...compiled) strangers {
	p := strangers{addresses: []netip.Addr{{}}, names: []string{""}, paths: []string{"/", "/somewhere"}}
	for _, c := range both {
		for _, docs := range c.Documents {
			text := docs[document.DocManifest].Body
			for _, m := range networkInText.FindAllStringSubmatch(text, -1) {
				if n, err := netip.ParsePrefix(m[1]); err == nil && !slices.Contains(p.addresses, n.Addr()) {
					p.addresses = append(p.addresses, n.Addr(), last(n))
				}
			}
			for _, m := range namesInText.FindAllStringSubmatch(text, -1) {
				for _, name := range nameInText.FindAllStringSubmatch(m[1], -1) {
					p.names = append(p.names, name[1])
				}
			}
			for _, m := range pathInText.FindAllStringSubmatch(text, -1) {
				p.paths = append(p.paths, m[1], m[1]+"/below")
			}
		}
	}
	slices.Sort(p.names)
	slices.Sort(p.paths)
	p.names, p.paths = slices.Compact(p.names), slices.Compact(p.paths)
	return p
}

// last returns the last address of a network.
func last(n netip.Prefix) netip.Addr {
	b := n.Addr().AsSlice()
	for i := n.Bits(); i < 8*len(b); i++ {
		b[i/8] |= 0x80 >> (i % 8)
	}
	a, _ := netip.AddrFromSlice(b)
	return a
}

// entered removes what a manifest says about callers without an identity, and adds a statement for
// each of them that may come in instead.
func entered(host string, body any, probes strangers, seen map[string]bool, lengths map[string]float64) {
	forwarder, _ := body.(map[string]any)["forwarder"].(map[string]any)
	entries := decoded[[]document.Entry](forwarder["entries"])
	for _, e := range entries {
		at := fmt.Sprintf("%s takes in at %s %s for %s", host, e.Listen, e.Protocol, face(e.ID, e.Port))
		for _, name := range probes.names {
			if len(e.ServerNames) > 0 && !slices.Contains(e.ServerNames, name) {
				continue
			}
			for _, from := range probes.addresses {
				in := func(n netip.Prefix) bool { return n.Contains(from) }
				if len(e.From) > 0 && !slices.ContainsFunc(e.From, in) {
					continue
				}
				who := fmt.Sprintf("%s as %q %s from %v", at, name, e.Outside, from)
				seen[who] = true
				if e.AccessLog != "" {
					seen[who+" logged"] = true
				}
				if e.AccessLog == "full" { // also grants the sampled log
					seen[who+" logged in full"] = true
				}
			}
			for what, n := range map[string]int64{"connections": int64(e.Limits.Connections), "opens": int64(e.Limits.OpensPerSecond), "bytes": e.Limits.BytesPerSecond} {
				if n == 0 {
					n = math.MaxInt
				}
				lengths[fmt.Sprintf("%s as %q: %s", at, name, what)] = float64(n)
			}
		}
	}
	delete(forwarder, "entries")
	for _, r := range list(forwarder["reach"]) {
		r := r.(map[string]any)
		if r["tlsName"] == nil {
			continue
		}
		rules := decoded[document.PublicRules](r["ingress"])
		for _, name := range append(list(r["tlsAliases"]), r["tlsName"]) {
			for _, path := range probes.paths {
				d := rules.At(path)
				port := d.Port
				if port == "" {
					port, _ = r["port"].(string)
				}
				for _, from := range probes.addresses {
					if d.Allows(from) {
						seen[fmt.Sprintf("%s serves %s%s of %s:%s to %v", host, name, path, r["id"], port, from)] = true
					}
				}
			}
		}
		delete(r, "ingress")
	}
}

// decoded decodes a part of a document.
func decoded[T any](v any) (as T) {
	b, err := json.Marshal(v)
	if err == nil {
		err = json.Unmarshal(b, &as)
	}
	if err != nil {
		panic(err)
	}
	return as
}
