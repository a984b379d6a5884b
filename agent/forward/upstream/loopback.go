package upstream

import (
	"net"
	"net/netip"
	"strconv"
	"strings"

	"github.com/florete/florete/internal/document"
)

// Loopback returns the loopback addresses of a service's upstream, to which all accounts of this
// host can connect. It returns nil if the upstream is not on loopback.
func Loopback(p document.Published) []netip.AddrPort {
	host, port, err := net.SplitHostPort(p.Upstream)
	number, errPort := strconv.ParseUint(port, 10, 16)
	if strings.HasPrefix(p.Upstream, "unix:") || err != nil || errPort != nil {
		return nil
	}
	at := func(addrs ...netip.Addr) (all []netip.AddrPort) {
		for _, a := range addrs {
			all = append(all, netip.AddrPortFrom(a, uint16(number)))
		}
		return all
	}
	four := netip.AddrFrom4([4]byte{127, 0, 0, 1})
	if host == "localhost" {
		return at(four, netip.IPv6Loopback())
	}
	addr, err := netip.ParseAddr(host)
	switch {
	case err != nil:
		return nil
	case addr.IsUnspecified(): // as a destination, an unspecified address means loopback
		if addr.Is4() {
			return at(four)
		}
		return at(netip.IPv6Loopback())
	case addr.Unmap().IsLoopback():
		return at(addr.Unmap())
	}
	return nil
}
