package ingress

import (
	"net/netip"
	"slices"
	"strings"
	"testing"
)

// TestListens checks where a proxy listens if local listeners use the same port: on the host's
// addresses except loopback.
func TestListens(t *testing.T) {
	s := Sites{Local: []uint16{80, 4443}, Addresses: []netip.Addr{netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("2001:db8::1")}}
	for _, c := range []struct {
		given string
		want  []string
	}{
		{"80", []string{"192.0.2.1:80", "[2001:db8::1]:80"}},
		{"443", []string{"443", "[::]:443"}},
		{"127.0.0.1:80", []string{"127.0.0.1:80"}},
	} {
		if got, err := listens(s, c.given); err != nil || !slices.Equal(got, c.want) {
			t.Errorf("nginx, %s: %q, %v, want %q", c.given, got, err, c.want)
		}
	}
	if got, err := listening(s, "443"); err != nil || !slices.Equal(got, []string{":443"}) {
		t.Errorf("Caddy: %q, %v", got, err)
	}
	if _, err := listens(Sites{Local: s.Local}, "80"); err == nil || !strings.Contains(err.Error(), "no address") {
		t.Errorf("without an address: %v", err)
	}
}
