package outbound

import (
	"fmt"
	"testing"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/tests/kit"
)

// TestSpread checks that callers begin with different forwarders, each always with the same one,
// and that only the callers of a forwarder that is gone move to another.
func TestSpread(t *testing.T) {
	const hosts, forwarders = 300, 3
	var all []document.Addresses
	for i := range forwarders {
		all = append(all, document.Addresses{fmt.Sprintf("192.0.2.%d:4610", i+1)})
	}
	first := map[string]int{}
	for i := range hosts {
		host := kit.ID(fmt.Sprintf("node/host-%d", i))
		order := spread(host, all)
		first[order[0][0]]++
		if len(order) != forwarders {
			t.Fatalf("%s tries %v, want all of %v", host, order, all)
		}
		if again := spread(host, []document.Addresses{all[2], all[0], all[1]}); again[0][0] != order[0][0] {
			t.Errorf("%s begins with %v or %v, as they come", host, order[0], again[0])
		}
		if fewer := spread(host, all[:2]); order[0][0] != all[2][0] && fewer[0][0] != order[0][0] {
			t.Errorf("%s begins with %v instead of %v without another", host, fewer[0], order[0])
		}
	}
	for _, e := range all {
		if n := first[e[0]]; n < hosts/forwarders/2 {
			t.Errorf("%d of %d hosts begin with %s", n, hosts, e[0])
		}
	}
}
