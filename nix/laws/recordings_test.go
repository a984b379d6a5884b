package laws

import (
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/florete/florete/internal/document"
)

// ageKeys are public keys of age whose owners may read recordings.
var ageKeys = []string{
	"age1ql3z7hjy54pw3hyww5ayyfg7zqgvc7w3j2elw8zmrj2kg5sfn9aqmcac8p",
	"age1gl2asgzfpgyldt5rpg5j4fdl6j43euvgm2lygtzs6t6vk87f79pstn46u8",
	"age1t7rxyev2z3rw82stdlrrepyc39nvn86l5078zqkf5uasdy86jp6svpy7pa",
}

// recordings has the sessions at some SSH services recorded. It does not use the generator's random
// numbers, so that the rest of the topology does not change.
func (c *cluster) recordings() {
	g := generator{rand.New(rand.NewPCG(uint64(len(c.Services)), uint64(len(c.Roles)+10*len(c.Hosts))))}
	for _, name := range sorted(c.Services) {
		if s := c.Services[name]; s.Protocol == "ssh" && g.IntN(3) > 0 {
			s.Record = &record{append(g.some(ageKeys[:2], 1), ageKeys[2]), g.IntN(3) * 30}
		}
	}
}

// recordingEdits change how the sessions at a service are recorded.
var recordingEdits = map[string]func(generator, *cluster) bool{
	"a service is recorded": func(_ generator, c *cluster) bool {
		for _, name := range sorted(c.Services) {
			if s := c.Services[name]; s.Protocol == "ssh" && s.Record == nil {
				s.Record = &record{Recipients: ageKeys[:1]}
				return true
			}
		}
		return false
	},
	"a service is not recorded":      onRecorded(func(s *service) { s.Record = nil }),
	"one who reads recordings more":  onRecorded(func(s *service) { s.Record.Recipients = ageKeys }),
	"one who reads recordings less":  onRecorded(func(s *service) { s.Record.Recipients = ageKeys[2:] }),
	"another who reads recordings":   onRecorded(func(s *service) { s.Record.Recipients = ageKeys[:1] }),
	"recordings are kept for longer": onRecorded(func(s *service) { s.Record.Days = 3650 }),
	"recordings are kept for less":   onRecorded(func(s *service) { s.Record.Days = 1 }),
}

func init() { maps.Copy(edits, recordingEdits) }

// onRecorded is an edit of a service with recorded sessions.
func onRecorded(change func(*service)) func(generator, *cluster) bool {
	return func(_ generator, c *cluster) bool {
		for _, name := range sorted(c.Services) {
			if s := c.Services[name]; s.Record != nil {
				change(s)
				return true
			}
		}
		return false
	}
}

// TestRecordings checks that the hosts of a service with recorded sessions know who reads the
// recordings and how long they are kept, that callers know that they are recorded, and that no other
// service is recorded.
func TestRecordings(t *testing.T) {
	published, reached := 0, 0
	for _, s := range samples(t) {
		for host, m := range s.is.manifests(t) {
			for _, p := range m.Forwarder.Publish {
				var want *document.Record
				if of := s.c.Services[p.ID.Name()]; of != nil && of.Record != nil {
					want = &document.Record{Recipients: slices.Sorted(slices.Values(of.Record.Recipients)), Days: of.Record.Days}
					if want.Days == 0 {
						want.Days = 90
					}
					published++
				}
				if (want == nil) != (p.Record == nil) || want != nil && (want.Days != p.Record.Days || !slices.Equal(want.Recipients, p.Record.Recipients)) {
					t.Errorf("%s: %s publishes %s with %+v, want %+v", s, host, p.ID, p.Record, want)
				}
			}
			for _, r := range m.Forwarder.Reach {
				of := s.c.Services[r.ID.Name()]
				want := of != nil && of.Record != nil && r.ID.TrustDomain() == s.c.TrustDomain
				if r.Recorded != want {
					t.Errorf("%s: %s reaches %s, recorded %t, want %t", s, host, r.ID, r.Recorded, want)
				}
				if want {
					reached++
				}
			}
		}
	}
	if n := len(samples(t)); published < n/4 || reached < n/4 {
		t.Errorf("only %d published and %d reached services are recorded in %d topologies", published, reached, n)
	}
}
