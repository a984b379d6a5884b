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

// negotiationTimeout bounds the time before the SOCKS5 request is complete.
const negotiationTimeout = 10 * time.Second

// socks serves SOCKS5 for a process that acts under the listener's identity: methods, request,
// reply, and the requested operation.
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

// negotiate reads exactly the methods and the request. The only method is "no authentication",
// because the kernel authenticates the process.
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

// otherProtocol is the error for a client that does not begin with SOCKS5's version.
type otherProtocol struct{ first byte }

// socks4 is the version of SOCKS4 and SOCKS4a.
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

// answer refuses a client in its own protocol, if it is known, so that a person sees the reason.
func (o *otherProtocol) answer(local *net.TCPConn) {
	switch {
	case o.first == socks4:
		_, _ = local.Write([]byte{0, 91, 0, 0, 0, 0, 0, 0}) // request rejected or failed
	case o.first >= 'A' && o.first <= 'Z':
		_, _ = fmt.Fprintf(local, "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\nConnection: close\r\n\r\n%s\n", o)
	}
	// Closing with unread bytes would reset the connection and lose the answer.
	_ = local.CloseWrite()
	_, _ = io.CopyN(io.Discard, local, 64<<10)
}

// connect serves the request CONNECT. It replies after the far side's answer.
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
	carry(ctx, local, st, counted, ends)
	return nil
}

// resolve returns the service of a destination, which must be a name. If the service has a single
// port, the port of the destination is ignored; otherwise it must be the port that callers use.
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

// named returns the service with a name: its own name, an alias, or the name of a reachable service
// of another trust domain.
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

// replyFrom sends a reply with the address to which the process must send its datagrams.
func replyFrom(w io.Writer, code uint8, bound netip.AddrPort) error {
	addr := statute.AddrSpec{AddrType: statute.ATYPIPv6, IP: bound.Addr().Unmap().AsSlice(), Port: int(bound.Port())}
	if bound.Addr().Unmap().Is4() {
		addr.AddrType = statute.ATYPIPv4
	}
	_, err := w.Write(statute.Reply{Version: statute.VersionSocks5, Response: code, BndAddr: addr}.Bytes())
	return err
}

// replyTo returns the reply code that best describes an error.
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
