package ingress

import (
	"errors"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/florete/florete/internal/document"
)

// listen records the addresses of the host and the ports that local listeners use. A proxy cannot
// listen on all addresses with a port that a local listener uses on one of them.
func (s *Sites) listen(f document.Forwarder) error {
	for _, r := range f.Reach {
		s.Local = append(s.Local, r.Listen.Port())
	}
	interfaces, err := net.InterfaceAddrs()
	if err != nil {
		return err
	}
	for _, i := range interfaces {
		if prefix, err := netip.ParsePrefix(i.String()); err == nil && prefix.Addr().IsGlobalUnicast() {
			s.Addresses = append(s.Addresses, prefix.Addr())
		}
	}
	slices.SortFunc(s.Addresses, netip.Addr.Compare)
	return nil
}

// at returns the addresses that a proxy listens on. The argument given is the setting: either an
// address with a port, or a port alone. A port alone stands for all addresses, unless a local
// listener uses the port on one of them.
func (s Sites) at(given string) ([]string, error) {
	port, err := strconv.ParseUint(given, 10, 16)
	if err != nil || !slices.Contains(s.Local, uint16(port)) {
		return []string{given}, nil
	}
	var all []string
	for _, a := range s.Addresses {
		all = append(all, netip.AddrPortFrom(a, uint16(port)).String())
	}
	if len(all) == 0 {
		return nil, errors.New("port " + given + " is that of local listeners, and this host has no address beside loopback yet")
	}
	return all, nil
}

// isPort reports whether a setting is a port without an address.
func isPort(at string) bool { return !strings.Contains(at, ":") }
