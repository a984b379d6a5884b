package announce_test

import (
	"bufio"
	"bytes"
	"crypto/x509"
	"net/netip"
	"strings"
	"testing"

	"github.com/pires/go-proxyproto"
	"github.com/pires/go-proxyproto/tlvparse"

	"github.com/florete/florete/agent/forward/announce"
	"github.com/florete/florete/tests/kit"
	"github.com/florete/florete/tests/kit/agenttest"
)

func TestProxyHeader(t *testing.T) {
	four, other := netip.MustParseAddrPort("192.0.2.7:4610"), netip.MustParseAddrPort("192.0.2.1:4611")
	six := netip.MustParseAddrPort("[2001:db8::7]:4610")
	for _, c := range []struct {
		from, to, source, destination netip.AddrPort
		command                       proxyproto.ProtocolVersionAndCommand
		transport                     proxyproto.AddressFamilyAndProtocol
	}{
		{four, other, four, other, proxyproto.PROXY, proxyproto.TCPv4},
		{six, six, six, six, proxyproto.PROXY, proxyproto.TCPv6},
	} {
		b, err := announce.Caller{ID: agenttest.Alice, Leaf: &x509.Certificate{}, Service: agenttest.Outline, From: c.from, To: c.to}.ProxyHeader()
		if err != nil {
			t.Fatal(err)
		}
		h, err := proxyproto.Read(bufio.NewReader(bytes.NewReader(b)))
		if err != nil {
			t.Fatal(err)
		}
		if h.Version != 2 || h.Command != c.command || h.TransportProtocol != c.transport ||
			h.SourceAddr.String() != c.source.String() || h.DestinationAddr.String() != c.destination.String() {
			t.Errorf("%s to %s: got %+v", c.from, c.to, h)
		}
		tlvs, err := h.TLVs()
		if err != nil {
			t.Fatal(err)
		}
		got := map[proxyproto.PP2Type]string{}
		for _, v := range tlvs {
			got[v.Type] = string(v.Value)
		}
		tls, ok := tlvparse.FindSSL(tlvs)
		cn, _ := tls.ClientCN()
		version, _ := tls.SSLVersion()
		if !ok || cn != agenttest.Alice.String() || version != "TLSv1.3" || !tls.Verified() || tls.Client != 7 {
			t.Errorf("TLS: got %+v, %v", tls, ok)
		}
		if got[0xd0] != agenttest.Alice.String() || got[proxyproto.PP2_TYPE_AUTHORITY] != "outline.demo.flor.rete" || len(tlvs) != 3 {
			t.Errorf("got %q", got)
		}
	}
}

// TestProxyHeaderIsShort checks that the header fits the small buffers of readers: 4096 bytes in
// nginx, 512 in agentgateway.
func TestProxyHeaderIsShort(t *testing.T) {
	long := kit.ID("service/" + strings.Repeat("n", 63) + "/" + strings.Repeat("s", 50))
	b, err := announce.Caller{ID: long, Service: long, Leaf: &x509.Certificate{}, From: netip.MustParseAddrPort("[2001:db8::7]:1"), To: netip.MustParseAddrPort("[2001:db8::8]:1")}.ProxyHeader()
	if err != nil || len(b) > 512 {
		t.Errorf("%d bytes, %v", len(b), err)
	}
}
