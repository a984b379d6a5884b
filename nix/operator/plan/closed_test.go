package plan

import (
	"encoding/json"
	"maps"
	"regexp"
	"strings"
	"testing"

	"github.com/florete/florete/nix/operator/compile"
)

// harmless are the places of documents where another value opens nothing, each with the
// reason. This list is the test's own: what a rule forgets is in neither.
var harmless = map[string]*regexp.Regexp{
	"what another calls it, or the document itself": regexp.MustCompile(`^(policy\.)?(host|grants\.\[\]\.need)$`),
	"order and repetition alone":                    regexp.MustCompile(`^(needs\.\[\]\.(dependsOn|generation|renew\.staleAfter)|policy\.grants\.\[\]\.generation)`),
	"a share of a lifetime that is a right":         regexp.MustCompile(`^needs\.\[\]\.renew\.atPercent$`),
	"a group reads where a mode lets it":            regexp.MustCompile(`^needs\.\[\]\.deliver\.group$`),
	"peers prove who they are":                      regexp.MustCompile(`^(providers\..*\.addresses.*|forwarder\.reach\.\[\]\.endpoints.*|policy\.provider\.[^.]*\.id)$`),
	"loopback listeners look up who calls":          regexp.MustCompile(`^forwarder\.(reach|socks)\.\[\]\.listen$`),
	"names of roles, whose services are rights":     regexp.MustCompile(`^roles\.\[\]$`),
	"relays prove who they are, and see no names":   regexp.MustCompile(`^forwarder\.(relays\..*\.addresses.*|relay\.id|relay\.routes\.\[\]\.(label|next)|reach\.\[\]\.(via\..*|opaqueName)|publish\.\[\]\.opaqueName)$`),
	"the publishing host decides":                   regexp.MustCompile(`^forwarder\.reach\.\[\]\.(protocol|grpc)$`),
	"strangers reach it anyway":                     regexp.MustCompile(`^forwarder\.reach\.\[\]\.ingress\.(hsts|maxBody|timeout)$`),
}

// TestWhatIsNotHarmlessOpens checks that every change in a document opens something or is harmless:
// another value, a new field of an object, and an unknown field that appears, changes or
// disappears.
func TestWhatIsNotHarmlessOpens(t *testing.T) {
	if testing.Short() {
		t.Skip("left out by -short: it takes long")
	}
	tried := 0
	for _, name := range []string{"accounts.nix", "behind-a-right.nix", "limits.nix", "new-client.nix", "outside.nix", "provider-added.nix", "public-name.nix", "public-ports.nix", "relays.nix", "strangers.nix"} {
		c := cases()[name]
		for host, docs := range c.After.Documents {
			for kind, raw := range docs {
				var body any
				if err := json.Unmarshal([]byte(raw.Body), &body); err != nil {
					t.Fatal(err)
				}
				// A host refuses what cannot be decoded.
				widens := func() bool {
					b, err := json.Marshal(body)
					if err != nil {
						t.Fatal(err)
					}
					is := compile.Snapshot{Topology: c.After.Topology, Documents: map[string]documents{}}
					maps.Copy(is.Documents, c.After.Documents)
					other := documents{}
					maps.Copy(other, docs)
					other[kind] = compile.Raw{Envelope: docs[kind].Envelope, Body: string(b)}
					is.Documents[host] = other
					p, err := Compare(c.After, is)
					return err != nil || p.Widens
				}
				edit(body, "", func(where string) {
					tried++
					place := where
					if kind == "policy" {
						place = "policy." + where
					}
					for _, re := range harmless {
						if re.MatchString(place) || kind == "policy" && re.MatchString(where) {
							return
						}
					}
					if !widens() {
						t.Errorf("%s: %s of %s: %s changes, and nothing opens", name, kind, host, where)
					}
				})
			}
		}
	}
	if tried < 500 {
		t.Errorf("tried only %d edits", tried)
	}
}

const another = "-----BEGIN CERTIFICATE-----\nYW5vdGhlcg==\n-----END CERTIFICATE-----\n"

// edit makes every edit in turn: another scalar, an unknown field.
func edit(v any, place string, try func(where string)) {
	at := func(key string) string {
		if place == "" {
			return key
		}
		return place + "." + key
	}
	switch v := v.(type) {
	case map[string]any:
		for key, old := range v {
			switch o := old.(type) {
			case string:
				v[key] = o + "x"
				if key == "mode" {
					v[key] = "0666"
				}
				try(at(key))
			case float64:
				v[key] = o + 1
				try(at(key))
			}
			v[key] = old
			edit(old, at(key), try)
		}
		unknown := []any{"x", float64(1), true, []any{}, map[string]any{}, []any{"x", "x"}, map[string]any{"y": "z"}}
		v["unheardOf"] = unknown[len(place)%len(unknown)]
		try(at("unheardOf"))
		delete(v, "unheardOf")
	case []any:
		for i, old := range v {
			switch o := old.(type) {
			case string:
				v[i] = o + "x"
				if strings.HasPrefix(o, "-----BEGIN") {
					v[i] = o + another // beside it
				}
				try(at("[]"))
			case float64:
				v[i] = o + 1
				try(at("[]"))
			}
			v[i] = old
			edit(old, at("[]"), try)
		}
	}
}

// TestUnknownFieldGoes checks that the removal of an unknown field counts as widening, since the
// field may have restricted access.
func TestUnknownFieldGoes(t *testing.T) {
	c := cases()["service-moves.nix"]
	with := compile.Snapshot{Topology: c.After.Topology, Documents: map[string]documents{}}
	for host, docs := range c.After.Documents {
		with.Documents[host] = documents{}
		for kind, raw := range docs {
			with.Documents[host][kind] = compile.Raw{Envelope: raw.Envelope, Body: raw.Body[:len(raw.Body)-1] + `,"only":"weekdays"}`}
		}
	}
	p, err := Compare(with, c.After)
	if err != nil || !p.Widens {
		t.Errorf("widens %v, %v: %+v", p.Widens, err, p.Opened)
	}
}

// TestSomethingIsToldOfWhatOpens checks that a plan omits consequences of another right that it
// reports, but never that right.
func TestSomethingIsToldOfWhatOpens(t *testing.T) {
	for name, c := range cases() {
		d := newDelta()
		d.topology(c.Before.Topology, c.After.Topology)
		d.recordings(c.Before.Topology, c.After.Topology)
		for host := range union(c.Before.Documents, c.After.Documents) {
			if err := d.host(host, c.Before.Documents[host], c.After.Documents[host]); err != nil {
				t.Fatal(err)
			}
		}
		all := 0
		for _, e := range d.seen {
			if e.on[after] > e.on[before] {
				all++
			}
		}
		if opened, _, _ := d.sorted(); (all > 0) != (len(opened) > 0) {
			t.Errorf("%s: %d rights open, %d are told", name, all, len(opened))
		}
	}
}
