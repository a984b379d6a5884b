package transport

import (
	"net/netip"
	"testing"

	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/tests/kit"
)

// TestNAT checks what is concluded from the addresses that relays see.
func TestNAT(t *testing.T) {
	const own, other = "10.0.0.2:4610", "10.0.0.3:4610"
	for _, test := range []struct {
		name string
		seen [][2]string // own and outside address at each relay
		want NAT
	}{
		{"nothing", nil, NATUnknown},
		{"no NAT", [][2]string{{own, own}, {own, own}}, NoNAT},
		{"one relay", [][2]string{{own, "198.51.100.1:7"}}, SomeNAT},
		{"the same port", [][2]string{{own, "198.51.100.1:7"}, {own, "198.51.100.1:7"}}, SameNAT},
		{"another port", [][2]string{{own, "198.51.100.1:7"}, {own, "198.51.100.1:8"}}, OtherNAT},
		{"another address", [][2]string{{own, "198.51.100.1:7"}, {own, "198.51.100.2:7"}}, OtherNAT},
		{"another of three", [][2]string{{own, "198.51.100.1:7"}, {own, "198.51.100.1:7"}, {own, "198.51.100.1:8"}}, OtherNAT},
		{"two networks", [][2]string{{own, "198.51.100.1:7"}, {other, "198.51.100.2:8"}}, SomeNAT},
		{"IPv6 without NAT", [][2]string{{own, "198.51.100.1:7"}, {"[2001:db8::1]:4610", "[2001:db8::1]:4610"}}, SomeNAT},
		{"IPv4 in IPv6", [][2]string{{"[::ffff:10.0.0.2]:4610", own}}, NoNAT},
	} {
		t.Run(test.name, func(t *testing.T) {
			var o Outside
			o.seen = map[spiffe.ID]seenAt{}
			for i, x := range test.seen {
				o.seen[kit.ID("vertex/"+string(rune('a'+i)))] = seenAt{own: unmapped(netip.MustParseAddrPort(x[0])), outside: unmapped(netip.MustParseAddrPort(x[1]))}
			}
			for range 10 { // in the different orders of a map
				if got := o.NAT(); got != test.want {
					t.Fatalf("NAT %q, want %q", got, test.want)
				}
			}
		})
	}
}

// TestMayMeet checks to which addresses a relay can make a host send.
func TestMayMeet(t *testing.T) {
	for _, test := range []struct {
		at, relay string
		want      bool
	}{
		{"198.51.100.1:7", "203.0.113.1:4610", true},
		{"[2001:db8::1]:7", "[2001:db8::2]:4610", true},
		{"[2001:db8::1]:7", "203.0.113.1:4610", false},
		{"198.51.100.1:0", "203.0.113.1:4610", false},
		{"0.0.0.0:7", "203.0.113.1:4610", false},
		{"224.0.0.1:7", "203.0.113.1:4610", false},
		{"[ff02::1]:7", "[2001:db8::2]:4610", false},
		{"255.255.255.255:7", "203.0.113.1:4610", false},
		{"127.0.0.1:7", "203.0.113.1:4610", false},
		{"127.0.0.1:7", "127.0.0.1:4610", true},
		{"[::ffff:127.0.0.1]:7", "203.0.113.1:4610", false},
		{"192.168.0.1:7", "203.0.113.1:4610", false},
		{"192.168.0.1:7", "10.0.0.1:4610", true},
		{"100.64.0.1:7", "203.0.113.1:4610", false},
		{"100.64.0.1:7", "100.64.0.9:4610", true},
		{"[fe80::1]:7", "[2001:db8::2]:4610", false},
		{"[fd00::1]:7", "[2001:db8::2]:4610", false},
	} {
		if got := mayMeet(netip.MustParseAddrPort(test.at), netip.MustParseAddrPort(test.relay)); got != test.want {
			t.Errorf("%s from a relay at %s: %v, want %v", test.at, test.relay, got, test.want)
		}
	}
	if mayMeet(netip.AddrPort{}, netip.MustParseAddrPort("203.0.113.1:4610")) {
		t.Error("no address may be met")
	}
}
