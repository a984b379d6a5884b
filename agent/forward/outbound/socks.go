package outbound

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/things-go/go-socks5/statute"

	"github.com/florete/florete/agent/forward/handover"
	"github.com/florete/florete/agent/forward/telemetry"
	"github.com/florete/florete/agent/forward/transport"
	"github.com/florete/florete/agent/forward/wire"
	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/spiffe"
)

// negotiationTimeout is the time that a client has to send a complete SOCKS5 request.
const negotiationTimeout = 10 * time.Second

// socks serves a client of a SOCKS5 listener. The client's process acts under the identity of the
// listener. socks negotiates the method, reads the request, performs the requested operation, and
// replies.
func (s *Server) socks(ctx context.Context, local *net.TCPConn, c connection, ends *handover.Ends) {
	if denied := c.rules.caller(c.connKey); denied != nil {
		s.refuse(c, denied)
		reset(local)
		return
	}
	ends.Add(func() { local.Close() })
	stop := context.AfterFunc(ctx, func() { local.Close() })
	ends.Add(func() { stop() })
	local.SetDeadline(time.Now().Add(negotiationTimeout))
	request, err := negotiate(local)
	var other *otherProtocol
	if errors.As(err, &other) {
		s.refuse(c, &refusal{becauseNotSOCKS5, err.Error()})
		other.answer(local)
	}
	local.SetDeadline(time.Time{})
	switch {
	case err != nil:
	case request.Command == statute.CommandConnect:
		err = s.connect(ctx, local, request.DstAddr, c, ends)
	case request.Command == statute.CommandAssociate:
		err = s.associate(local, c)
	default:
		err = reply(local, statute.RepCommandNotSupported)
	}
	if err != nil {
		s.Log.Debug("socks", "peer", c.as, "error", err)
	}
}

// negotiate reads the client's methods and its request, and no further bytes. It offers only the
// method "no authentication", because the kernel authenticates the process.
func negotiate(local io.ReadWriter) (request statute.Request, err error) {
	var version [1]byte
	if _, err := io.ReadFull(local, version[:]); err != nil {
		return request, err
	}
	if version[0] != statute.VersionSocks5 {
		return request, &otherProtocol{version[0]}
	}
	methods, err := statute.ParseMethodRequest(io.MultiReader(bytes.NewReader(version[:]), local))
	if err != nil {
		return request, err
	}
	if !slices.Contains(methods.Methods, statute.MethodNoAuth) {
		_, _ = local.Write([]byte{statute.VersionSocks5, statute.MethodNoAcceptable})
		return request, fmt.Errorf("methods %v, want %d: no authentication", methods.Methods, statute.MethodNoAuth)
	}
	if _, err := local.Write([]byte{statute.VersionSocks5, statute.MethodNoAuth}); err != nil {
		return request, err
	}
	request, err = statute.ParseRequest(local)
	if errors.Is(err, statute.ErrUnrecognizedAddrType) {
		_ = reply(local, statute.RepAddrTypeNotSupported)
	}
	return request, err
}

// otherProtocol is the error for a client that does not speak SOCKS5. It contains the first byte
// that the client sent, by which the protocol is recognized.
type otherProtocol struct{ first byte }

// socks4 is the version number that SOCKS4 and SOCKS4a clients send first.
const socks4 = 4

func (o *otherProtocol) Error() string {
	const remedy = "this port speaks SOCKS5: write socks5h:// before its address"
	switch {
	case o.first == socks4:
		return "SOCKS4, want SOCKS5: " + remedy
	case o.first >= 'A' && o.first <= 'Z':
		return "HTTP, want SOCKS5: " + remedy
	}
	return fmt.Sprintf("a first byte of %#x, want %#x of SOCKS5: %s", o.first, statute.VersionSocks5, remedy)
}

// answer refuses a client that does not speak SOCKS5, in its own protocol if that is known. The
// person who uses the client then sees the reason.
func (o *otherProtocol) answer(local *net.TCPConn) {
	switch {
	case o.first == socks4:
		_, _ = local.Write([]byte{0, 91, 0, 0, 0, 0, 0, 0}) // code 91: request rejected or failed
	case o.first >= 'A' && o.first <= 'Z':
		_, _ = fmt.Fprintf(local, "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\nConnection: close\r\n\r\n%s\n", o)
	}
	// Closing the connection with unread bytes would reset it and lose the answer.
	_ = local.CloseWrite()
	_, _ = io.CopyN(io.Discard, local, 64<<10)
}

// connect serves the request CONNECT. It replies to the client after the remote forwarder has
// answered.
func (s *Server) connect(ctx context.Context, local *net.TCPConn, dest statute.AddrSpec, c connection, ends *handover.Ends) error {
	to, code, err := c.rules.resolve(&dest, document.TCP)
	c.serviceKey = to
	if err != nil {
		s.refuse(c, &refusal{becauseBadName, err.Error()})
		return reply(local, code)
	}
	ctx, end, ok := s.admit(ctx, c)
	if !ok {
		return reply(local, statute.RepRuleFailure)
	}
	ends.Add(end)
	begun := time.Now()
	st, err := s.request(ctx, c, nil)
	s.trace(c, st, begun, err)
	if err != nil {
		s.refuse(c, explain(err))
		return reply(local, replyTo(err))
	}
	if err := reply(local, statute.RepSuccess); err != nil {
		transport.Reset(st.Stream, wire.Reset)
		st.Release()
		return err
	}
	counted := s.Metrics.Begin(telemetry.Out, c.target.ID(), c.port, c.as)
	ends.Add(counted.Done)
	counted.Opened(time.Since(begun))
	carry(ctx, local, st, counted, nil, ends, func(error) {})
	return nil
}

// resolve returns the service for the destination of a SOCKS5 request, which must be a name. If the
// service has a single port, resolve ignores the port of the destination. Otherwise that port must
// be one that callers use for the service. On error, resolve also returns the SOCKS5 reply code.
func (r *rules) resolve(dest *statute.AddrSpec, over document.Protocol) (serviceKey, uint8, error) {
	k := serviceKey{protocol: over}
	if dest.FQDN == "" {
		return k, statute.RepAddrTypeNotSupported, fmt.Errorf("destination %s: want a name that ends in %s", dest, spiffe.Suffix)
	}
	d, err := r.named(dest.FQDN, spiffe.Resolve)
	if err != nil {
		return k, statute.RepHostUnreachable, err
	}
	k.target = d
	var several []string
	for _, x := range r.ports[d] {
		listen := r.reach[x].Listen.Port()
		if x.port == "" {
			continue
		}
		if x.protocol == over && int(listen) == dest.Port {
			return x, 0, nil
		}
		several = append(several, fmt.Sprintf("%d/%s (%s)", listen, cmp.Or(x.protocol, "tcp"), x.port))
	}
	if several != nil {
		return k, statute.RepHostUnreachable, fmt.Errorf("destination %s: want a port of it that is reachable from this host: %s", dest, strings.Join(several, ", "))
	}
	return k, 0, nil
}

// named returns the reachable service with the given name. The name can be the service's own name,
// an alias, or the full name of a service in another trust domain. The function resolve parses a
// service's own name.
func (r *rules) named(name string, resolve func(name, trustDomain string) (spiffe.Dialable, error)) (spiffe.Dialable, error) {
	d, err := resolve(name, r.trustDomain)
	if _, reached := r.ports[d]; reached && err == nil {
		return d, nil
	}
	if alias, ok := r.aliases.Resolve(name); ok {
		return alias, nil
	}
	if foreign, ok := r.abroad[strings.ToLower(strings.TrimSuffix(name, "."))]; ok {
		return foreign, nil
	}
	return d, err
}

func reply(w io.Writer, code uint8) error {
	return replyFrom(w, code, netip.AddrPortFrom(netip.IPv4Unspecified(), 0))
}

// replyFrom sends a SOCKS5 reply with a code and an address. For UDP ASSOCIATE, the client sends
// its datagrams to this address.
func replyFrom(w io.Writer, code uint8, bound netip.AddrPort) error {
	addr := statute.AddrSpec{AddrType: statute.ATYPIPv6, IP: bound.Addr().Unmap().AsSlice(), Port: int(bound.Port())}
	if bound.Addr().Unmap().Is4() {
		addr.AddrType = statute.ATYPIPv4
	}
	_, err := w.Write(statute.Reply{Version: statute.VersionSocks5, Response: code, BndAddr: addr}.Bytes())
	return err
}

// replyTo returns the SOCKS5 reply code that best describes an error.
func replyTo(err error) uint8 {
	var refused *transport.RefusedError
	if !errors.As(err, &refused) {
		if errors.Is(err, transport.ErrNoIdentity) || errors.Is(err, transport.ErrExpired) {
			return statute.RepServerFailure
		}
		return statute.RepHostUnreachable
	}
	switch refused.Code {
	case wire.Denied, wire.Untrusted:
		return statute.RepRuleFailure
	case wire.Refused:
		return statute.RepConnectionRefused
	case wire.NotPublished, wire.Unreachable, wire.Foreign:
		return statute.RepHostUnreachable
	}
	return statute.RepServerFailure
}
