package acl_test

import (
	"net/netip"
	"testing"

	"github.com/florete/florete/agent/forward/acl"
	"github.com/florete/florete/internal/document"
)

func TestSources(t *testing.T) {
	s := acl.NewSources(2, document.Limits{Connections: 1})
	a, b, c := netip.MustParsePrefix("192.0.2.1/32"), netip.MustParsePrefix("2001:db8::/64"), netip.MustParsePrefix("192.0.2.3/32")
	_, release, err := s.Open(a)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.Open(a); err == nil {
		t.Error("the second connection of an address is within its limit of one")
	}
	for _, other := range []netip.Prefix{b, c} {
		_, release, err := s.Open(other)
		if err != nil {
			t.Errorf("%s: %v", other, err)
			continue
		}
		release()
	}
	if _, _, err := s.Open(a); err == nil {
		t.Error("an address with a connection was forgotten")
	}
	release()
	if _, _, err := s.Open(a); err != nil {
		t.Errorf("after the first connection has ended: %v", err)
	}
	s.Apply(document.Limits{Connections: 2})
	if _, _, err := s.Open(a); err != nil {
		t.Errorf("with a limit of two: %v", err)
	}
}
