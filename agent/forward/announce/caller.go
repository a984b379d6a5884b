// Package announce tells a service the identity of each caller that is connected to it, if the
// topology requires this for the service. The identity is in a PROXY protocol header before the
// bytes of the connection, or in headers of each HTTP request.
//
// The PROXY protocol header is of version 2 and of type TCP over IPv4 or IPv6, for every type of
// upstream. Its source address is the address of the caller's forwarder. Its destination address is
// the address at which that forwarder called this host. The following TLVs describe the caller, in
// this order:
//
//	0x02 PP2_TYPE_AUTHORITY    name of the called service: wiki.demo.flor.rete
//	0xD0                       SPIFFE ID of the caller, as in Istio's ztunnel
//	0x20 PP2_TYPE_SSL          client 0x07: TLS, with a certificate; verify 0: it is valid
//	  0x21 PP2_SUBTYPE_SSL_VERSION  TLSv1.3
//	  0x22 PP2_SUBTYPE_SSL_CN       SPIFFE ID of the caller, because SVIDs have no common name
//
// There are two HTTP headers. X-Forwarded-Client-Cert has Envoy's format and one element. The
// element contains By (the service), Hash (the SHA-256 of the caller's certificate) and URI (the
// caller's SPIFFE ID). X-Forwarded-For contains the address of the caller's forwarder.
//
// A service behind a gate (see ingress.Gate) is also told which user calls, in the headers in which
// an ingress tells it who signed in. X-Forwarded-User contains the SPIFFE ID of the user. For users
// of the service's own trust domain, X-Forwarded-Preferred-Username contains the user's name.
package announce

import (
	"crypto/sha256"
	"crypto/x509"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strings"

	"github.com/pires/go-proxyproto"
	"github.com/pires/go-proxyproto/tlvparse"

	"github.com/florete/florete/internal/spiffe"
)

// These are the request headers that tell a service behind a gate which person calls.
const (
	UserHeader   = "X-Forwarded-User" // ID of the person that never changes
	EmailHeader  = "X-Forwarded-Email"
	NameHeader   = "X-Forwarded-Preferred-Username"
	GroupsHeader = "X-Forwarded-Groups"
)

// Caller describes the caller of a connection to a service.
type Caller struct {
	ID       spiffe.ID
	Leaf     *x509.Certificate // certificate that proves ID
	Service  spiffe.ID         // service that is called
	From, To netip.AddrPort    // addresses of the caller's forwarder and of this forwarder
}

// Name returns the name of the called service, for example wiki.demo.flor.rete.
func (c Caller) Name() string {
	d, err := spiffe.Dial(c.Service)
	if err != nil {
		return c.Service.Short()
	}
	return spiffe.Render(d)
}

// ProxyHeader returns the header of the PROXY protocol, version 2, that the forwarder sends to the
// service before the bytes of the connection. The package documentation describes its content.
func (c Caller) ProxyHeader() ([]byte, error) {
	id := []byte(c.ID.String())
	tls, err := tlvparse.PP2SSL{
		Client: tlvparse.PP2_BITFIELD_CLIENT_SSL | tlvparse.PP2_BITFIELD_CLIENT_CERT_CONN | tlvparse.PP2_BITFIELD_CLIENT_CERT_SESS,
		TLV: []proxyproto.TLV{
			{Type: proxyproto.PP2_SUBTYPE_SSL_VERSION, Value: []byte("TLSv1.3")},
			{Type: proxyproto.PP2_SUBTYPE_SSL_CN, Value: id},
		},
	}.Marshal()
	if err != nil {
		return nil, err
	}
	h := proxyproto.HeaderProxyFromAddrs(2, net.TCPAddrFromAddrPort(c.From), net.TCPAddrFromAddrPort(c.To))
	if err := h.SetTLVs([]proxyproto.TLV{{Type: proxyproto.PP2_TYPE_AUTHORITY, Value: []byte(c.Name())}, {Type: spiffe.ProxyCaller, Value: id}, tls}); err != nil {
		return nil, err
	}
	return h.Format()
}

// ours contains the names of the headers that the forwarder removes from each request, because a
// caller could have set them to deceive the service. The forwarder then sets
// X-Forwarded-Client-Cert and X-Forwarded-For itself. It does not set the others, which are
// Forwarded (RFC 7239) and ClientAddresses.
var ours = named(append([]string{"X-Forwarded-Client-Cert", "X-Forwarded-For", "Forwarded"}, ClientAddresses...))

// persons contains the names of the headers that the forwarder also removes from requests of
// callers inside the cluster to a service behind a gate.
var persons = named([]string{UserHeader, EmailHeader, NameHeader, GroupsHeader})

func named(names []string) map[string]bool {
	all := map[string]bool{}
	for _, name := range names {
		all[strings.Map(hyphenate, name)] = true
	}
	return all
}

// ClientAddresses lists headers in which proxies and CDNs outside the cluster pass the address of a
// client. Many programs trust them more than X-Forwarded-For. The forwarder removes them from
// requests, because no part of Florete sets them. X-Real-IP is not in the list, because an ingress
// sets it.
var ClientAddresses = []string{
	"CF-Connecting-IP",
	"CF-Connecting-IPv6",
	"CF-Pseudo-IPv4",
	"Client-IP",
	"Fastly-Client-IP",
	"Fly-Client-IP",
	"Forwarded-For",
	"True-Client-IP",
	"X-Appengine-Remote-Addr",
	"X-Appengine-User-IP",
	"X-Azure-ClientIP",
	"X-Azure-SocketIP",
	"X-Client-IP",
	"X-Cluster-Client-IP",
	"X-Envoy-External-Address",
	"X-Forwarded",
	"X-Original-Forwarded-For",
	"X-Originating-IP",
	"X-ProxyUser-IP",
	"X-Remote-Addr",
	"X-Remote-IP",
}

// strip removes the headers with some names, and headers whose names a service may confuse with
// them. CGI programs, for example, cannot distinguish x-forwarded-for from X_Forwarded.For.
func strip(h http.Header, names map[string]bool) {
	for name := range h {
		if names[strings.Map(hyphenate, name)] {
			delete(h, name)
		}
	}
}

func hyphenate(r rune) rune {
	switch {
	case 'A' <= r && r <= 'Z':
		return r - 'A' + 'a'
	case 'a' <= r && r <= 'z' || '0' <= r && r <= '9':
		return r
	}
	return '-'
}

// announce replaces the headers with which a caller could deceive the service (see strip) by the
// headers that describe this caller.
func (c Caller) announce(h http.Header) {
	strip(h, ours)
	h.Set("X-Forwarded-Client-Cert", fmt.Sprintf("By=%s;Hash=%x;URI=%s", c.Service, sha256.Sum256(c.Leaf.Raw), c.ID))
	h.Set("X-Forwarded-For", c.From.Addr().String())
}

// CallerOf returns the caller that the forwarder states in the headers of a request, as announce
// writes them.
func CallerOf(h http.Header) (spiffe.ID, error) {
	all := h.Values("X-Forwarded-Client-Cert")
	if len(all) == 1 {
		if _, id, ok := strings.Cut(all[0], ";URI="); ok {
			return spiffe.ParseID(id)
		}
	}
	return spiffe.ID{}, fmt.Errorf("header X-Forwarded-Client-Cert %.200q, want that of the forwarder: give the service identity = \"http\"", all)
}

// IsPerson reports whether the caller is a user. Nodes and services do not pass a gate.
func (c Caller) IsPerson() bool { return c.ID.Kind() == spiffe.KindUser }

// introduce replaces the headers of a gate by those that describe this caller. The name of a user
// of another trust domain could be the name of a user of this one.
func (c Caller) introduce(h http.Header) {
	strip(h, persons)
	h.Set(UserHeader, c.ID.String())
	if c.ID.TrustDomain() == c.Service.TrustDomain() {
		h.Set(NameHeader, c.ID.Name())
	}
}
