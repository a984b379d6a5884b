package conns

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"time"
)

// RaceStagger is the time after which Race tries the next address while earlier attempts continue
// (RFC 8305, section 5).
const RaceStagger = 250 * time.Millisecond

// Race connects to a program that has several addresses, with the algorithm of RFC 8305. It tries
// the addresses in order. Each attempt starts RaceStagger after the previous one, or as soon as the
// previous one fails. Race returns the first connection that succeeds, and cancels the other
// attempts. If a canceled attempt still succeeds, Race passes its connection to discard. When Race
// returns, no attempt is running. If all attempts fail, the error contains the errors of all
// addresses.
func Race[A, C any](ctx context.Context, addresses []A, connect func(context.Context, A) (C, error), discard func(C)) (won C, err error) {
	switch len(addresses) {
	case 0:
		return won, errors.New("no address")
	case 1:
		return connect(ctx, addresses[0])
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	type result struct {
		conn C
		err  error
	}
	results := make(chan result)
	next := time.NewTimer(0)
	defer next.Stop()
	finished := false
	for running := 0; running > 0 || (!finished && len(addresses) > 0); {
		select {
		case <-next.C:
			if finished || len(addresses) == 0 {
				continue
			}
			address := addresses[0]
			addresses = addresses[1:]
			running++
			go func() {
				conn, err := connect(ctx, address)
				results <- result{conn, err}
			}()
			next.Reset(RaceStagger)
		case r := <-results:
			running--
			switch {
			case r.err == nil && !finished:
				won, finished = r.conn, true
				cancel()
			case r.err == nil:
				discard(r.conn)
			default:
				err = join(err, r.err)
				next.Reset(0)
			}
		}
	}
	if finished {
		return won, nil
	}
	return won, err
}

// join joins two errors into an error on one line.
func join(a, b error) error {
	if a == nil {
		return b
	}
	return fmt.Errorf("%w; %w", a, b)
}

// Resolve looks up the IP addresses of host:port, in an order for Race. IPv6 and IPv4 addresses
// alternate (RFC 8305, section 4).
func Resolve(ctx context.Context, hostport string) ([]netip.AddrPort, error) {
	host, service, err := net.SplitHostPort(hostport)
	if err != nil {
		return nil, err
	}
	port, err := strconv.ParseUint(service, 10, 16)
	if err != nil {
		return nil, fmt.Errorf("address %s: port %q, want a number up to 65535", hostport, service)
	}
	if ip, err := netip.ParseAddr(host); err == nil {
		return []netip.AddrPort{netip.AddrPortFrom(ip, uint16(port))}, nil
	}
	found, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	if err != nil {
		return nil, err
	}
	return byTurns(found, uint16(port)), nil
}

// byTurns sorts IP addresses so that IPv6 and IPv4 alternate. The address family that the resolver
// returned first comes first (RFC 6724).
func byTurns(found []netip.Addr, port uint16) (all []netip.AddrPort) {
	var families [2][]netip.AddrPort
	for _, ip := range found {
		ip = ip.Unmap()
		family := 0
		if ip.Is4() != found[0].Unmap().Is4() {
			family = 1
		}
		families[family] = append(families[family], netip.AddrPortFrom(ip, port))
	}
	for i := range found {
		for _, f := range families {
			if i < len(f) {
				all = append(all, f[i])
			}
		}
	}
	return all
}
