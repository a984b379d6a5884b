package kit

import (
	"context"
	"net"
	"net/netip"
	"strings"
	"testing"

	"golang.org/x/net/dns/dnsmessage"
)

// Names makes this process resolve only the given DNS names until the end of the test. The map
// contains the addresses of each name. For this, Names replaces net.DefaultResolver by a resolver
// that asks a DNS server in this process.
func Names(t testing.TB, names map[string][]string) {
	t.Helper()
	server, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go serveNames(server, names)
	was := net.DefaultResolver
	t.Cleanup(func() { net.DefaultResolver = was; server.Close() })
	net.DefaultResolver = &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "udp", server.LocalAddr().String())
	}}
}

func serveNames(server net.PacketConn, names map[string][]string) {
	buf := make([]byte, 512)
	for {
		n, from, err := server.ReadFrom(buf)
		if err != nil {
			return
		}
		var m dnsmessage.Message
		if m.Unpack(buf[:n]) != nil || len(m.Questions) == 0 {
			continue
		}
		q := m.Questions[0]
		m.Response, m.Authoritative, m.Additionals = true, true, nil
		found, known := names[strings.TrimSuffix(q.Name.String(), ".")]
		if !known {
			m.RCode = dnsmessage.RCodeNameError
		}
		for _, a := range found {
			ip := netip.MustParseAddr(a)
			header := dnsmessage.ResourceHeader{Name: q.Name, Class: q.Class, TTL: 1}
			if ip.Is4() && q.Type == dnsmessage.TypeA {
				m.Answers = append(m.Answers, dnsmessage.Resource{Header: header, Body: &dnsmessage.AResource{A: ip.As4()}})
			} else if ip.Is6() && q.Type == dnsmessage.TypeAAAA {
				m.Answers = append(m.Answers, dnsmessage.Resource{Header: header, Body: &dnsmessage.AAAAResource{AAAA: ip.As16()}})
			}
		}
		if b, err := m.Pack(); err == nil {
			server.WriteTo(b, from)
		}
	}
}
